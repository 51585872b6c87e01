package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

// write makes the document and reads it back: what comes out must be what went in.
func (d *draft) write(inputs []input) ([]byte, error) {
	w := &writer{draft: d, several: len(inputs) > 1}
	w.place()
	w.document(inputs)
	document := []byte(w.b.String())
	return document, d.sameAs(document)
}

// sameAs refuses a document that config would read as something else.
func (d *draft) sameAs(document []byte) error {
	entries, problems := config.ParseYAML(documentName, document)
	if err := problems.Err(); err != nil {
		return fmt.Errorf("the document cannot be written: %w", err)
	}
	got := map[string]config.Entry{}
	for _, e := range entries {
		got[e.Key] = e
	}
	for _, s := range d.settings {
		e, ok := got[s.key]
		want := trim(s.value)
		same := ok && (e.Value == want || e.Items != nil && slices.Equal(e.Items, s.list()))
		if !same {
			return fmt.Errorf("%s cannot be written: it would be read as another value", oneLine(s.key))
		}
	}
	if list := got["clusters"].Items; !slices.Equal(list, d.clusters) && len(list)+len(d.clusters) > 0 {
		return fmt.Errorf("the aliases %q cannot be written", d.clusters)
	}
	return nil
}

// list is the setting's items.
func (s *setting) list() []string {
	if s.items != nil {
		return s.items
	}
	return config.ReadList(s.value)
}

// place is where each setting belongs.
func (w *writer) place() {
	// Flows may be named by settings of aliases that are not there; config leaves those at the top.
	uses, _ := config.Review(config.Source{Name: documentName, KeepReferences: true}, w.entries())
	w.flows = map[string][]line{}
	w.clusters = map[string][]line{}
	placed := map[string]config.Use{}
	for _, u := range uses {
		placed[u.Key] = u
	}
	for i := range w.settings {
		s := &w.settings[i]
		u, ok := placed[s.key]
		if !ok || !w.lists(u) {
			u = config.Use{Scope: config.ScopeTop, Name: s.key}
		}
		l := line{setting: s, name: u.Name, list: u.Type == config.TypeList || u.Type == config.TypePatterns}
		switch u.Scope {
		case config.ScopeFlow:
			flow := u.Flow.String()
			if _, known := w.flows[flow]; !known {
				w.order = append(w.order, flow)
			}
			w.flows[flow] = append(w.flows[flow], l)
		case config.ScopeCluster:
			w.clusters[string(u.Cluster)] = append(w.clusters[string(u.Cluster)], l)
		default:
			w.defaults = append(w.defaults, l)
		}
	}
	w.enabling()
}

// lists says whether the place of a setting belongs to clusters that the document lists.
func (w *writer) lists(u config.Use) bool {
	for _, alias := range []mirror.ClusterAlias{u.Cluster, u.Flow.Source, u.Flow.Target} {
		if alias != "" && !slices.Contains(w.draft.clusters, string(alias)) {
			return false
		}
	}
	return true
}

// line is a setting at its place.
type line struct {
	*setting
	name string
	list bool // written as a real list
}

// enabling makes flows that the original did not enable say so: being listed enables one.
func (w *writer) enabling() {
	for _, flow := range w.order {
		key := flow + ".enabled"
		if w.find(key) != nil {
			continue
		}
		w.extra = append(w.extra, setting{key: key, value: "false", verdict: Added, why: []string{"a flow that is listed is enabled unless it says otherwise"}})
	}
	for i := range w.extra {
		flow := strings.TrimSuffix(w.extra[i].key, ".enabled")
		w.flows[flow] = append([]line{{setting: &w.extra[i], name: "enabled"}}, w.flows[flow]...)
	}
}

type writer struct {
	*draft
	several  bool // inputs, so that comments name the file
	b        strings.Builder
	defaults []line
	clusters map[string][]line
	flows    map[string][]line
	order    []string // of flows
	extra    []setting
}

func (w *writer) document(inputs []input) {
	var names []string
	for _, in := range inputs {
		names = append(names, in.Name)
	}
	fmt.Fprintf(&w.b, "# Written by heliograph import from %s (%s).\n", oneLine(strings.Join(names, ", ")), about[inputs[0].format])
	w.b.WriteString("# Comments tell where each setting came from; what was not taken over stands at the end.\n")
	w.comments("", w.head)
	if len(w.defaults) > 0 {
		w.b.WriteString("\ndefaults:\n")
		w.lines("  ", w.defaults)
	}
	if len(w.draft.clusters) > 0 {
		w.b.WriteString("\nclusters:\n")
	}
	for _, alias := range w.draft.clusters {
		w.section(yamlKey(alias), w.clusters[alias])
	}
	if len(w.order) > 0 {
		w.b.WriteString("\nflows:\n")
	}
	for _, flow := range w.order {
		w.section(yamlKey(flow), w.flows[flow])
	}
	w.left()
	if len(w.tail) > 0 {
		w.b.WriteString("\n")
		w.comments("", w.tail)
	}
}

// section writes a cluster or a flow. An enabled flow needs no line to say so.
func (w *writer) section(name string, lines []line) {
	shown := slices.DeleteFunc(slices.Clone(lines), func(l line) bool {
		return l.name == "enabled" && strings.EqualFold(trim(l.value), "true")
	})
	remarks := ""
	for _, l := range lines {
		if l.name == "enabled" && strings.EqualFold(trim(l.value), "true") {
			w.comments("  ", l.comment)
			remarks = w.source(l.setting)
		}
	}
	if remarks != "" {
		remarks = "  # " + remarks
	}
	if len(shown) == 0 {
		fmt.Fprintf(&w.b, "  %s: {}%s\n", name, remarks)
		return
	}
	fmt.Fprintf(&w.b, "  %s:%s\n", name, remarks)
	w.lines("    ", shown)
}

func (w *writer) lines(indent string, lines []line) {
	for _, l := range lines {
		w.comments(indent, l.comment)
		value, block := l.text(indent)
		about := w.source(l.setting)
		if l.verdict != Kept || len(l.why) > 0 || block {
			text := string(l.verdict)
			if about != "" {
				text += ", " + about
			}
			if len(l.why) > 0 {
				text += ": " + strings.Join(l.why, "; ")
			}
			w.comments(indent, []string{text})
			about = ""
		}
		if about != "" {
			about = "  # " + about
		}
		fmt.Fprintf(&w.b, "%s%s: %s%s\n", indent, yamlKey(l.name), value, about)
	}
}

// source tells where a setting came from.
func (w *writer) source(s *setting) string {
	var parts []string
	if s.from.path != "" && s.from.path != s.key && (s.verdict != Kept || s.from.line == 0) {
		parts = append(parts, s.from.path)
	}
	if s.from.line > 0 {
		parts = append(parts, w.at(s.from.file, s.from.line))
	}
	return oneLine(strings.Join(parts, ", "))
}

// at is a line of an input.
func (w *writer) at(file string, line int) string {
	if w.several {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("line %d", line)
}

func (w *writer) comments(indent string, lines []string) {
	for _, l := range lines {
		w.b.WriteString(strings.TrimRight(indent+"# "+oneLine(l), " ") + "\n")
	}
}

// left lists what did not become a setting.
func (w *writer) left() {
	for _, group := range []struct {
		verdict Verdict
		title   string
	}{
		{Changed, "Said in another way:"},
		{Dropped, "Not taken over:"},
		{Remark, "Worth knowing:"},
		{Missing, "Missing, to be supplied or decided:"},
	} {
		var lines []string
		for _, n := range w.notes {
			if n.Verdict != group.verdict || n.Why == "" && n.Now == "" {
				continue
			}
			place := n.File
			n.Verdict, n.File = "", ""
			text := strings.TrimPrefix(n.String(), ": ")
			if n.Line > 0 {
				text += " (" + w.at(place, n.Line) + ")"
			}
			lines = append(lines, "- "+text)
		}
		if len(lines) > 0 {
			w.b.WriteString("\n")
			w.comments("", append([]string{group.title}, lines...))
		}
	}
}

// text is the value as YAML, and whether it takes several lines.
func (l line) text(indent string) (text string, block bool) {
	// A list with a reference in it is split after the reference is resolved.
	if l.list && (l.items != nil || len(config.References(l.value)) == 0) {
		var items []string
		for _, item := range l.setting.list() {
			items = append(items, yamlText(item, true))
		}
		return "[" + strings.Join(items, ", ") + "]", false
	}
	value := trim(l.value)
	if strings.Contains(value, "\n") && blockable(value) {
		return "|-\n" + indent + "  " + strings.ReplaceAll(value, "\n", "\n"+indent+"  "), true
	}
	return yamlText(value, false), false
}

// blockable says whether a text may stand as a block: PEM may.
func blockable(s string) bool {
	for l := range strings.SplitSeq(s, "\n") {
		if l == "" || l != trim(l) || oneLine(l) != l {
			return false
		}
	}
	return true
}

var (
	yamlPlain  = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*$`)
	yamlNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)
	yamlName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*(->[A-Za-z_][A-Za-z0-9_.-]*)?$`)
	yamlWords  = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// yamlText writes a value. Patterns are quoted always, so that they look alike.
func yamlText(s string, item bool) string {
	word := slices.Contains(yamlWords, strings.ToLower(s))
	switch {
	case yamlNumber.MatchString(s), s == "true", s == "false":
		return s
	case yamlPlain.MatchString(s) && !word, item && yamlBroker.MatchString(s):
		return s
	}
	return yamlQuoted(s)
}

var yamlBroker = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*:[0-9]+$`)

func yamlKey(s string) string {
	if yamlName.MatchString(s) && !slices.Contains(yamlWords, strings.ToLower(s)) {
		return s
	}
	return yamlQuoted(s)
}

// yamlQuoted uses single quotes, in which nothing but the quote is special.
func yamlQuoted(s string) string {
	if oneLine(s) == s {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
