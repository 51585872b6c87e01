//go:build race

package replicate

// Under the race detector, pools forget at random.
const raceDetector = true
