package importer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"heliograph/internal/config"
)

// readProperties takes a MirrorMaker file over as it is; settle does the rest.
func readProperties(d *draft, f File) {
	entries, problems := config.ParseProperties(f.Name, f.Data)
	comments := newCommentary(f.Data)
	for _, p := range problems {
		at := origin{file: p.File, line: p.Line, path: p.Key}
		if p.Severity == config.Error {
			d.missing(at, remedy(p))
		} else {
			d.remark(at, remedy(p))
		}
	}
	last := map[string]int{}
	for i, e := range entries {
		last[e.Key] = i
	}
	for i, e := range entries {
		at := origin{file: f.Name, line: e.Origin.Line, path: e.Key}
		if last[e.Key] != i {
			d.drop(at, "written again below, where it holds")
			continue
		}
		above := comments.above(e.Origin.Line)
		if e.Key == "clusters" {
			for _, alias := range config.ReadList(e.Value) {
				if alias != "" {
					d.cluster(alias)
				}
			}
			d.notes = append(d.notes, at.note(Kept, "clusters", ""))
			d.head = append(d.head, above...)
			continue
		}
		s := setting{key: e.Key, value: e.Value, lost: e.Lost, from: at, verdict: Kept, comment: above}
		d.settings = append(d.settings, s)
	}
	d.tail = comments.rest()
	d.identityOfOld()
	d.flowProducers()
}

// remedy is a problem's message with what to do.
func remedy(p config.Problem) string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

const identityPolicy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

// identityOfOld says by name what an empty alias with an empty separator meant
// before there was a policy for it.
func (d *draft) identityOfOld() {
	const aliasKey, separatorKey, classKey = "source.cluster.alias", "replication.policy.separator", "replication.policy.class"
	for i := range d.settings {
		prefix, ok := strings.CutSuffix(d.settings[i].key, aliasKey)
		if !ok || trim(d.settings[i].value) != "" {
			continue
		}
		separator := d.find(prefix + separatorKey)
		if separator == nil {
			separator = d.find(separatorKey)
		}
		if separator == nil || trim(separator.value) != "" || d.find(prefix+classKey) != nil || d.find(classKey) != nil {
			continue
		}
		s := &d.settings[i]
		s.key, s.value, s.verdict = prefix+classKey, identityPolicy, Changed
		s.because("an empty alias with an empty separator is identity naming: topics keep their names")
		from, gone := separator.from, separator.key
		d.settings = slices.DeleteFunc(d.settings, func(s setting) bool { return s.key == gone })
		d.changed(from, prefix+classKey, "see source.cluster.alias")
		return // the slice has changed; a file with two of them has one separator
	}
}

// flowProducers writes S->T.producer.x, which reaches the producers of offset
// syncs only, in the form that says so.
func (d *draft) flowProducers() {
	var out []setting
	for _, s := range d.settings {
		flow, name, ok := strings.Cut(s.key, ".producer.")
		source, target, isFlow := strings.Cut(flow, "->")
		if !ok || !isFlow || strings.HasPrefix(name, "override.") || !slices.Contains(d.clusters, source) || !slices.Contains(d.clusters, target) {
			out = append(out, s)
			continue
		}
		s.verdict = Changed
		s.because("it reaches the producers of offset syncs only")
		used := false
		for _, side := range []struct{ name, alias string }{{"source", source}, {"target", target}} {
			key := flow + "." + side.name + ".producer." + name
			if d.find(key) == nil && d.find(side.alias+".producer."+name) == nil {
				s.key, used = key, true
				out = append(out, s)
				s.comment = nil
			}
		}
		if !used {
			d.drop(s.from, "other keys for the same clients beat it")
		}
	}
	d.settings = out
}

// trim takes off what Java's String.trim takes off.
func trim(s string) string { return strings.TrimFunc(s, func(c rune) bool { return c <= ' ' }) }

// commentary is the comments of a properties file by their line, told entry by entry.
type commentary struct {
	lines map[int]string
	told  int // the line of the entry that was asked for last
	count int
}

func newCommentary(data []byte) *commentary {
	text := string(data)
	if !utf8.Valid(data) {
		runes := make([]rune, len(data))
		for i, c := range data {
			runes[i] = rune(c)
		}
		text = string(runes)
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	c := &commentary{lines: map[int]string{}}
	continued := false
	for i, line := range strings.Split(text, "\n") {
		c.count = i + 1
		trimmed := strings.TrimLeft(line, " \t\f")
		if !continued && (strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "!")) {
			if word := strings.TrimRight(strings.TrimLeft(trimmed, "#!"), " \t\f"); strings.TrimSpace(word) != "" {
				c.lines[i+1] = commentText(strings.TrimPrefix(word, " "))
			}
			continue
		}
		backslashes := len(line) - len(strings.TrimRight(line, `\`))
		continued = backslashes%2 == 1 && (continued || trimmed != "")
	}
	return c
}

// commentText hides the secret of a setting that was commented out.
func commentText(text string) string {
	entries, _ := config.ParseProperties("", []byte(text))
	if len(entries) == 1 && entries[0].Value != "" && config.IsSecretKey(entries[0].Key) && len(config.References(entries[0].Value)) == 0 {
		return entries[0].Key + " = [hidden]"
	}
	return config.Redact(text)
}

// above are the comments between the entry that was asked for last and the one on this line.
func (c *commentary) above(line int) []string {
	from := c.told
	c.told = line
	return c.between(from, line)
}

// rest are the comments behind the last entry.
func (c *commentary) rest() []string { return c.between(c.told, c.count+1) }

func (c *commentary) between(from, to int) []string {
	var out []string
	for l := from + 1; l < to; l++ {
		if text, ok := c.lines[l]; ok {
			out = append(out, text)
		}
	}
	return out
}
