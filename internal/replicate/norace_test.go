//go:build !race

package replicate

const raceDetector = false
