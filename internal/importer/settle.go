package importer

import (
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

// documentName is the document's in config's eyes; its ending makes it YAML.
const documentName = "document.yaml"

// settle asks config what becomes of every setting and acts on it: what nothing
// reads is dropped, what has a new name gets it.
func (d *draft) settle() {
	uses, dep := config.Review(config.Source{Name: documentName, KeepReferences: true}, d.entries())
	problems := map[string]config.Problems{}
	for _, p := range dep.Problems {
		if p.Severity != config.Error {
			problems[p.Key] = append(problems[p.Key], p)
		}
	}
	effects := map[string]config.Use{}
	for _, u := range uses {
		effects[u.Key] = u
	}
	var kept []setting
	for _, s := range d.settings {
		u, known := effects[s.key]
		if s.verdict == Added { // what import adds has its reason
			delete(problems, s.key)
		} else {
			for _, p := range problems[s.key] {
				s.because(remark(p))
			}
		}
		delete(problems, s.key)
		switch {
		case s.key == "heliograph.strict":
			s.why = []string{"the native form is always strict"}
			d.notes = append(d.notes, s.dropped())
			continue
		case known && (u.Effect == config.NoEffect || u.Effect == config.Unread):
			if len(s.why) == 0 || u.Type == config.TypeClass {
				s.because("it says what heliograph does without it")
			}
			d.notes = append(d.notes, s.dropped())
			continue
		}
		if name, ok := strings.CutSuffix(s.key, ".blacklist"); ok && known {
			s.key, s.verdict = name+".exclude", Changed
			s.why = slices.DeleteFunc(s.why, func(why string) bool { return strings.HasPrefix(why, "old name of ") })
			s.because("the old name, which MirrorMaker ignores from 4.0 on")
		}
		if known && u.Name == "topics" {
			s.because(onlyWords(s.list()))
		}
		kept = append(kept, s)
	}
	d.settings = kept
	d.headless(problems)
}

// onlyWords speaks of a filter that looks like one for everything and is none.
func onlyWords(patterns []string) string {
	compiled, err := mirror.CompilePatterns(patterns)
	if err != nil || len(patterns) == 0 {
		return ""
	}
	for _, word := range []string{"orders", "payments", "t1", "a_b"} {
		if !compiled.Match(word) {
			return ""
		}
	}
	if slices.ContainsFunc([]string{"a.b", "a-b"}, compiled.Match) {
		return ""
	}
	return "it matches no topic with a dot or a dash in its name"
}

// headless passes on what config says of keys that are no setting.
func (d *draft) headless(problems map[string]config.Problems) {
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		for _, p := range problems[key] {
			d.remark(origin{path: key}, remedy(p))
		}
	}
}

// remark is a problem of config in the words of an import: its hints say what
// to do with a file that is not the one at hand.
func remark(p config.Problem) string {
	message := strings.TrimPrefix(p.Message, "accepted, has no effect: ")
	switch {
	case strings.HasPrefix(p.Hint, "rename it to "), p.Hint == "remove it", p.Hint == "":
		return message
	}
	return message + " (" + p.Hint + ")"
}

// dropped is the note of a setting that is left out, with its value unless that is a secret.
func (s *setting) dropped() Note {
	n := s.from.note(Dropped, "", strings.Join(s.why, "; "))
	if value := shown(s.key, trim(s.value)); value != "" && len(value) <= 80 && len(config.References(s.value)) == 0 {
		n.Setting = config.Redact(n.Setting + " = " + value)
	}
	return n
}

// judge reads the document as run would, apart from what references stand for,
// and notes what it lacks.
func (d *draft) judge(document []byte) {
	dep := config.Load(config.Source{Name: documentName, Bytes: document, KeepReferences: true})
	for _, p := range dep.Problems {
		if p.Severity != config.Error {
			continue
		}
		at := origin{path: p.Key}
		if s := d.find(p.Key); s != nil {
			at = s.from
		}
		n := at.note(Missing, "", remedy(p))
		if at.path != p.Key {
			n.Now = p.Key
		}
		d.notes = append(d.notes, n)
	}
}
