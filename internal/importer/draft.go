package importer

import (
	"cmp"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// setting is one key and value on its way from the original to the document.
type setting struct {
	key     string // as an mm2.properties would spell it: A.x, A->B.x, x
	value   string
	items   []string // a real list; nil otherwise
	lost    []string // escapes that lost their backslash in reading
	from    origin
	verdict Verdict
	why     []string
	comment []string // lines that stood above it
}

// because adds a remark.
func (s *setting) because(why string) {
	if why != "" && !slices.Contains(s.why, why) {
		s.why = append(s.why, why)
	}
}

func (s *setting) note(now string) Note {
	return s.from.note(s.verdict, now, strings.Join(s.why, "; "))
}

// draft is what a reader made of the original.
type draft struct {
	clusters []string
	settings []setting
	notes    []Note
	head     []string // comments above everything
	tail     []string // and below
}

// cluster makes the alias known.
func (d *draft) cluster(alias string) {
	if !slices.Contains(d.clusters, alias) {
		d.clusters = append(d.clusters, alias)
	}
}

func (d *draft) find(key string) *setting {
	i := slices.IndexFunc(d.settings, func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	return &d.settings[i]
}

// keep takes a setting over. A key that stands already holds; the new one is
// named as the same or as another value that is not used.
func (d *draft) keep(s setting) {
	s.verdict = cmp.Or(s.verdict, Kept)
	old := d.find(s.key)
	switch {
	case old == nil:
		d.settings = append(d.settings, s)
	case old.from == s.from: // one place that several connectors take from
	case old.value == s.value && slices.Equal(old.items, s.items):
		d.notes = append(d.notes, s.from.note(s.verdict, s.key, strings.Join(append(s.why, "the same as "+old.from.path), "; ")))
	default:
		s.because("another value than " + cmp.Or(old.from.path, old.key) + ", which holds: there is one value for the whole flow")
		d.notes = append(d.notes, s.from.note(Dropped, "", strings.Join(s.why, "; ")))
	}
}

// add says what the original said without words.
func (d *draft) add(key, value, why string, from origin) {
	if d.find(key) == nil {
		d.settings = append(d.settings, setting{key: key, value: value, from: from, verdict: Added, why: []string{why}})
	}
}

func (d *draft) drop(at origin, why string) { d.notes = append(d.notes, at.note(Dropped, "", why)) }

func (d *draft) missing(at origin, why string) { d.notes = append(d.notes, at.note(Missing, "", why)) }

func (d *draft) remark(at origin, why string) { d.notes = append(d.notes, at.note(Remark, "", why)) }

// changed names something that lives on in another form.
func (d *draft) changed(at origin, now, why string) {
	d.notes = append(d.notes, at.note(Changed, now, why))
}

// entries are the settings as config reads them.
func (d *draft) entries() []config.Entry {
	var out []config.Entry
	if len(d.clusters) > 0 {
		out = append(out, config.Entry{
			Key: "clusters", Value: strings.Join(d.clusters, ", "), Items: d.clusters,
			Origin: config.Origin{Key: "clusters"},
		})
	}
	for _, s := range d.settings {
		out = append(out, config.Entry{
			Key: s.key, Value: s.value, Items: s.items, Lost: s.lost,
			Origin: config.Origin{File: s.from.file, Line: s.from.line, Key: s.key},
		})
	}
	return out
}

// shown is a value for people.
func shown(key, value string) string {
	if config.IsSecretKey(key) && value != "" {
		return "[hidden]"
	}
	return value
}
