package chaos

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The summary is made of the tables of all runs in the report, so that a claim of
// zero always states the runs behind it, and nobody can forget to count a bad one.

const summaryTitle = "## Summary"

// contender is who was broken: the program, or Java MirrorMaker 2.
type contender struct {
	seeds  map[string]bool
	runs   int
	total  tally
	byKind map[string]*tally
}

// tally is what the runs showed of one kind of fault.
type tally struct {
	times, moved, lost, doubled int64
	medians                     []float64 // of each run, in seconds
	longest                     float64
}

var (
	runTitle = regexp.MustCompile(`^## (\S+), seed (\d+), (heliograph|Java)`)
	runRow   = regexp.MustCompile(`^\| ([^|]+) \| (\d+) \| ([^|]+) \| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	verdicts = regexp.MustCompile(`\*\*(\d+) records, (?:lost (\d+), )?doubled (\d+)\*\*`)
)

// withSummary gives a report the summary of its runs in place of the one it has.
func withSummary(report string) string {
	ours, java := &contender{}, &contender{}
	var now *contender
	for line := range strings.Lines(report) {
		line = strings.TrimRight(line, "\n")
		switch m := runTitle.FindStringSubmatch(line); {
		case m != nil && m[3] == "Java":
			now = java
			now.begin(m[2])
		case m != nil:
			now = ours
			now.begin(m[2])
		case strings.HasPrefix(line, "## "):
			now = nil
		case now != nil:
			now.read(line)
		}
	}
	head, rest := report, ""
	if i := strings.Index(report, "\n## "); i >= 0 {
		head, rest = report[:i+1], report[i+1:]
	}
	if strings.HasPrefix(rest, summaryTitle) {
		i := strings.Index(rest[1:], "\n## ")
		if i < 0 {
			rest = ""
		} else {
			rest = rest[i+2:]
		}
	}
	return head + summaryTitle + "\n\n" + summary(ours, java) + "\n" + rest
}

func (c *contender) begin(seed string) {
	if c.byKind == nil {
		c.seeds, c.byKind = map[string]bool{}, map[string]*tally{}
	}
	c.seeds[seed] = true
	c.runs++
}

// read takes over a line of a run's section.
func (c *contender) read(line string) {
	if m := verdicts.FindStringSubmatch(line); m != nil {
		c.total.moved += count(m[1])
		c.total.lost += count(m[2])
		c.total.doubled += count(m[3])
		return
	}
	m := runRow.FindStringSubmatch(line)
	if m == nil {
		return
	}
	t := c.byKind[m[1]]
	if t == nil {
		t = &tally{}
		c.byKind[m[1]] = t
	}
	t.times += count(m[2])
	c.total.times += count(m[2])
	t.moved += count(m[5])
	t.lost += count(m[6])
	t.doubled += count(m[7])
	if median, err := strconv.ParseFloat(strings.TrimSuffix(m[3], " s"), 64); err == nil {
		t.medians = append(t.medians, median)
	}
	if longest, err := strconv.ParseFloat(strings.TrimSuffix(m[4], " s"), 64); err == nil {
		t.longest = max(t.longest, longest)
	}
}

// count reads a number that a pattern has found; an empty one is zero.
func count(digits string) int64 {
	n, _ := strconv.ParseInt(cmp.Or(digits, "0"), 10, 64)
	return n
}

func summary(ours, java *contender) string {
	var b strings.Builder
	fmt.Fprintf(&b, "All runs below that came to a verdict, together. heliograph: %s. Java MirrorMaker 2: %s.\n\n", ours.words(), java.words())
	b.WriteString("| fault | times | recovery, median | longest | lost | doubled | Java: times | recovery, median | longest | lost | doubled |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, k := range kinds {
		mine, theirs := ours.byKind[string(k.kind)], java.byKind[string(k.kind)]
		if mine != nil || theirs != nil {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.kind, mine.cells(), theirs.cells())
		}
	}
	return b.String()
}

func (c *contender) words() string {
	return fmt.Sprintf("%d runs of %d seeds, %d faults, %d records, lost %d, doubled %d",
		c.runs, len(c.seeds), c.total.times, c.total.moved, c.total.lost, c.total.doubled)
}

func (t *tally) cells() string {
	if t == nil {
		return "0 | | | | "
	}
	median, longest := "", ""
	if n := len(t.medians); n > 0 {
		slices.Sort(t.medians)
		median, longest = fmt.Sprintf("%.1f s", (t.medians[(n-1)/2]+t.medians[n/2])/2), fmt.Sprintf("%.1f s", t.longest)
	}
	return fmt.Sprintf("%d | %s | %s | %d | %d", t.times, median, longest, t.lost, t.doubled)
}
