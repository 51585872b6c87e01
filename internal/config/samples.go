package config

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// usualTopics are names that filters are tried with besides their own samples.
var usualTopics = []string{"orders", "payments", "events.v1", "user-events", "t1", "a_b"}

// maxSamples bounds the topics that loops are looked for with.
const maxSamples = 128

// samples are topic names that the enabled flows' filters accept, as far as
// they can be made from the patterns.
func samples(d *Deployment) []string {
	out := slices.Clone(usualTopics)
	for i := range d.Flows {
		if !d.Flows[i].Enabled {
			continue
		}
		for _, pattern := range d.Flows[i].Selection.Filter.Include.Items() {
			for _, repeat := range []int{0, 1, 3} {
				if s, ok := sample(pattern, repeat); ok && s != "" && !slices.Contains(out, s) && len(out) < maxSamples {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

var (
	lookaround = regexp.MustCompile(`\(\?<?[!=][^()]*\)`)
	possessive = regexp.MustCompile(`([*+?}])\+`)
)

// sample makes a name that matches the pattern, repeating what may be repeated
// so many times beyond the least. Look-around is left out, so the name is tried
// against the filter before it proves anything.
func sample(pattern string, repeat int) (string, bool) {
	pattern = possessive.ReplaceAllString(lookaround.ReplaceAllString(pattern, ""), "$1")
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	writeSample(&b, re, repeat)
	return b.String(), b.Len() <= 249
}

func writeSample(b *strings.Builder, re *syntax.Regexp, repeat int) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCharClass:
		b.WriteRune(classMember(re.Rune))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			writeSample(b, sub, repeat)
		}
	case syntax.OpAlternate:
		writeSample(b, re.Sub[min(repeat, len(re.Sub)-1)], repeat)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := 0, repeat
		switch re.Op {
		case syntax.OpPlus:
			least, most = 1, 1+repeat
		case syntax.OpQuest:
			most = min(1, repeat)
		case syntax.OpRepeat:
			least, most = re.Min, re.Min+repeat
			if re.Max >= 0 {
				most = min(most, re.Max)
			}
		}
		for range max(least, most) {
			writeSample(b, re.Sub[0], repeat)
		}
	}
}

// classMember picks a member that may be part of a topic's name where there is one.
func classMember(ranges []rune) rune {
	for _, want := range "xa1Z._-" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1] && r < 128; r++ {
			if topicCharacters.MatchString(string(r)) {
				return r
			}
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'x'
}
