package config

import "heliograph/internal/mirror"

// Use is one key of a file: where it stands and what becomes of it there.
type Use struct {
	Entry
	Scope   Scope
	Cluster mirror.ClusterAlias // of X.key
	Flow    mirror.FlowID       // of S->T.key
	Name    string              // the key without alias or flow
	Type    Type                // empty where the key is of no catalogue
	Effect  Effect
}

// Review is [Load] for entries that were read elsewhere, and tells of each what
// becomes of it. Of a key written twice only the last is told.
func Review(src Source, entries []Entry) ([]Use, *Deployment) {
	var r report
	var uses []Use
	src.uses = &uses
	d := r.load(src, entries, false)
	return uses, d
}

// uses are the entries that count, in their order.
func (l *linter) uses(entries []Entry) []Use {
	last := map[string]int{}
	for i, e := range entries {
		last[e.Key] = i
	}
	var out []Use
	for i, e := range entries {
		if last[e.Key] != i {
			continue
		}
		p := l.place(e.Key)
		u := Use{Entry: e, Scope: p.scope, Cluster: p.alias, Flow: p.id, Name: p.name, Effect: l.effects[e.Key]}
		if k := l.keys.find(p.name); k != nil && k.Scope&p.scope != 0 {
			u.Type = k.Type
		}
		out = append(out, u)
	}
	return out
}

// ParseYAML reads the native form as the entries of the mm2.properties that means the same.
func ParseYAML(file string, data []byte) ([]Entry, Problems) { return parseYAML(file, data) }

// Redact hides what looks like a secret in a text for people.
func Redact(text string) string { return redact(text) }

// IsSecretKey says whether a key's value must not be shown, whatever its prefixes.
func IsSecretKey(key string) bool { return (&catalogue{}).secret(key) }

// References are the provider expressions in a value, as they are written.
func References(value string) []string { return reference.FindAllString(value, -1) }

// ReadList reads a list as a properties file writes it.
func ReadList(text string) []string { return value{Text: text}.list() }

// IsConnectionKey says whether a key is one of those that MirrorMaker copies into
// every client of a cluster: brokers, security.protocol, ssl.* and sasl.*.
func IsConnectionKey(name string) bool { return isConnectionKey(name) }

// ClientRole is the kind of client that a setting is for, as its prefix:
// "consumer", "producer" or "admin"; empty for what is no client's setting.
func ClientRole(name string) string {
	for _, k := range clientKeys {
		if k.Name == name {
			return k.Roles.first()
		}
	}
	return ""
}
