package config

import (
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// clientLayer checks keys below consumer., producer. and admin., at whatever
// place. It reports whether the key is one.
func (l *linter) clientLayer(p place, val value) bool {
	name, side := p.name, ""
	if p.scope == ScopeFlow {
		for _, s := range []string{"source", "target"} {
			if rest, ok := strings.CutPrefix(name, s+".cluster."); ok {
				l.sideCluster(p, s, rest, val)
				return true
			}
			if rest, ok := strings.CutPrefix(name, s+"."); ok && rest != "cluster.alias" {
				name, side = rest, s
			}
		}
	}
	word, rest, _ := strings.Cut(name, ".")
	role := roleOf(word)
	if role == 0 || rest == "" {
		return false
	}
	if override, ok := strings.CutPrefix(rest, "override."); ok && p.scope == ScopeFlow && side == "" {
		if role != RoleProducer {
			l.doubtful(val.Origin, "use "+l.clientPlace(word, override), "not read at this place: in MirrorMaker only exactly-once offset clients take it")
			return true
		}
		l.clientKey(role, override, val)
		return true
	}
	if p.scope == ScopeTop {
		l.doubtful(val.Origin, "use "+l.clientPlace(word, rest), "not read at this place; MirrorMaker drops it")
		return true
	}
	if !l.clientKey(role, rest, val) {
		return true
	}
	if p.scope == ScopeFlow {
		l.flowClientKey(p, side, word, rest, val)
	}
	return true
}

// clientKey checks one client setting and reports whether it has an effect.
func (l *linter) clientKey(role Roles, name string, val value) bool {
	if isConnectionKey(name) {
		k := l.keys.exact[name]
		l.known(k, place{scope: ScopeCluster, name: name}, val)
		return k.Effect == Honoured
	}
	k, ok := l.keys.clients[name]
	switch {
	case !ok:
		hint := ""
		meant := suggest(name, l.clientNames(role))
		if rest, ok := strings.CutPrefix(name, "override."); ok && l.keys.clients[rest] != nil {
			meant = rest
		}
		if meant != "" {
			hint = "did you mean " + strings.TrimSuffix(val.Origin.Key, name) + meant + "?"
		}
		l.effects[val.Origin.Key] = NoEffect
		l.infof(val.Origin, hint, "not a client setting that is known here; it has no effect")
		return false
	case k.Roles&role == 0:
		l.doubtful(val.Origin, "it belongs to "+k.Roles.String(), "has no effect on this kind of client")
		return false
	case !l.readable(k.Type, k.Values, name, val):
		return false
	case k.Effect == NoEffect:
		l.idle(val.Origin, k.Why)
		return false
	case k.Effect == Refused:
		l.effects[val.Origin.Key] = Refused
		l.errorf(val.Origin, "remove it", "cannot be honoured: %s", k.Why)
		return false
	}
	return true
}

// flowClientKey speaks of flow-level layers that another key beats or that
// reach less than their writer thinks.
func (l *linter) flowClientKey(p place, side, role, name string, val value) {
	switch {
	case side != "":
		return
	case role == "producer" && !isConnectionKey(name):
		l.doubtful(val.Origin, fmt.Sprintf("use %s.producer.%s or %s.producer.override.%s for records", p.id.Target, name, p.id, name),
			"reaches the producer of offset syncs only, as in MirrorMaker")
		return
	}
	for _, alias := range []mirror.ClusterAlias{p.id.Source, p.id.Target} {
		if winner, ok := l.clusterLayer(alias, role, name); ok {
			l.infof(val.Origin, "", "%s on line %d wins over it for the clients on %s", winner.Key, winner.Line, alias)
		}
	}
}

// clusterLayer is what gives a cluster's clients of that role the setting, where
// anything does: the key for the role, or for a connection key the cluster's own
// or the top level's, which MirrorMaker copies into every role.
func (l *linter) clusterLayer(alias mirror.ClusterAlias, role, name string) (Origin, bool) {
	keys := []string{string(alias) + "." + role + "." + name}
	if isConnectionKey(name) {
		keys = append(keys, string(alias)+"."+name, name)
	}
	for _, key := range keys {
		if val, ok := l.raw[key]; ok {
			return val.Origin, true
		}
	}
	return Origin{}, false
}

// sideCluster checks S->T.source.cluster.* and S->T.target.cluster.*.
func (l *linter) sideCluster(p place, side, name string, val value) {
	alias := p.id.Source
	if side == "target" {
		alias = p.id.Target
	}
	if isConnectionKey(name) {
		l.known(l.keys.exact[name], place{scope: ScopeCluster, name: name}, val)
		if winner, ok := l.clusterLayer(alias, "consumer", name); ok {
			l.doubtful(val.Origin, fmt.Sprintf("use %s.%s, or %s.%s.consumer.%s and its like", alias, name, p.id, side, name),
				"has no effect: %s on line %d wins over it", winner.Key, winner.Line)
		}
		return
	}
	l.doubtful(val.Origin, fmt.Sprintf("use %s.%s", alias, l.clientForm(name)), "not read at this place: only connection and security keys pass")
}

// clientForm puts the kind of client before a bare client setting.
func (l *linter) clientForm(name string) string {
	k, ok := l.keys.clients[name]
	if !ok {
		return name
	}
	return k.Roles.first() + "." + name
}

// clientPlace is where a client setting of that role is read: at the source for
// consumers, at the target for producers.
func (l *linter) clientPlace(role, name string) string {
	var aliases []string
	for _, id := range l.flows {
		alias := id.Target
		if role == "consumer" {
			alias = id.Source
		}
		if !slices.Contains(aliases, string(alias)) {
			aliases = append(aliases, string(alias))
		}
	}
	for i, alias := range aliases {
		aliases[i] = alias + "." + role + "." + name
	}
	return either(aliases)
}

// either joins alternatives, at most three.
func either(s []string) string {
	if len(s) > 3 {
		s = append(s[:3:3], "...")
	}
	return strings.Join(s, " or ")
}

// misplaced speaks of a key that is known, but not read where it stands.
func (l *linter) misplaced(k *Key, p place, val value) {
	name := p.name
	if name == "exactly.once.source.support" && p.scope != ScopeCluster {
		l.effects[val.Origin.Key] = Unread
		l.warnf(val.Origin, "use "+either(l.forTargets(name)), "exactly-once is NOT on as written: the key is read only with the target's alias before it")
		return
	}
	if l.keys.clients[name] != nil && p.scope != ScopeTop && k.Scope&p.scope == 0 && k.Scope == ScopeCluster {
		l.doubtful(val.Origin, "use "+l.clientPlace(l.keys.clients[name].Roles.first(), name), "not read at this place")
		return
	}
	var uses []string
	switch {
	case k.Scope&ScopeFlow != 0:
		for _, id := range l.flows {
			if p.scope != ScopeCluster || id.Source == p.alias || id.Target == p.alias {
				uses = append(uses, id.String()+"."+name)
			}
		}
		if k.Scope&ScopeTop != 0 {
			uses = append(uses, name)
		}
	case k.Scope&ScopeCluster != 0:
		uses = l.forTargets(name)
	default:
		uses = []string{name}
	}
	l.doubtful(val.Origin, "use "+either(uses), "not read at this place")
}

// forTargets is the key with the alias of every target before it.
func (l *linter) forTargets(name string) []string {
	var keys []string
	for _, id := range l.flows {
		if key := string(id.Target) + "." + name; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// unknown speaks of a key that nothing reads.
func (l *linter) unknown(p place, val value) {
	if isBlob(p.name) {
		l.doubtful(val.Origin, "end every line of it but the last with a backslash", "a line of PEM text or of a key stands by itself; nothing reads it")
		return
	}
	if source, rest, ok := strings.Cut(p.name, "->"); ok && p.scope == ScopeTop {
		l.unknownFlow(source, rest, val)
		return
	}
	if l.connectorKey(p, val) {
		return
	}
	if k, ok := l.keys.clients[p.name]; ok {
		l.doubtful(val.Origin, "use "+l.bareClient(k, p), "not read at this place")
		return
	}
	if p.scope == ScopeTop {
		if alias, rest, ok := strings.Cut(p.name, "."); ok {
			if k := l.keys.find(rest); k != nil && k.Scope&ScopeCluster != 0 && (isConnectionKey(rest) || k.Scope == ScopeCluster) {
				l.doubtful(val.Origin, l.aliasHint(alias), "%q is not among clusters", alias)
				return
			}
		}
	}
	l.doubtful(val.Origin, l.meant(p), "unknown key; nothing reads it")
}

// meant is a hint to the key that was probably meant: one that may stand at the
// place, or else one of another place.
func (l *linter) meant(p place) string {
	if meant := suggest(p.name, l.namesAt(p.scope)); meant != "" {
		return "did you mean " + p.prefix() + meant + "?"
	}
	if word, rest, ok := strings.Cut(p.name, "."); ok && p.scope != ScopeTop {
		if role := suggest(word, roleNames); role != "" {
			return "did you mean " + p.prefix() + role + "." + rest + "?"
		}
	}
	meant := suggest(p.name, l.namesAt(ScopeTop|ScopeFlow|ScopeCluster))
	if meant == "" {
		return ""
	}
	if l.keys.exact[meant].Scope == ScopeCluster {
		return "did you mean " + either(l.forTargets(meant)) + "?"
	}
	return "did you mean " + meant + "? It is read at another place"
}

// connectorKey speaks of source.cluster.* and target.cluster.*, which belong
// into a connector's own configuration. They may look like keys of clusters
// that are called source and target.
func (l *linter) connectorKey(p place, val value) bool {
	key := p.prefix() + p.name
	source, isSource := strings.CutPrefix(key, "source.cluster.")
	target, isTarget := strings.CutPrefix(key, "target.cluster.")
	if p.scope == ScopeFlow || !isSource && !isTarget || len(l.flows) == 0 {
		return false
	}
	use := string(l.flows[0].Source) + "." + l.clientForm(source)
	if isTarget {
		use = string(l.flows[0].Target) + "." + l.clientForm(target)
	}
	l.doubtful(val.Origin, "use "+use, "a key of a connector's own configuration; nothing reads it here")
	return true
}

// bareClient is where a client setting without its layer belongs.
func (l *linter) bareClient(k *ClientKey, p place) string {
	role := k.Roles.first()
	switch {
	case p.scope == ScopeCluster:
		return p.prefix() + role + "." + k.Name
	case p.scope == ScopeFlow && role == "consumer":
		return p.prefix() + "source.consumer." + k.Name
	case p.scope == ScopeFlow && role == "producer":
		return fmt.Sprintf("%s.producer.%s or %sproducer.override.%s", p.id.Target, k.Name, p.prefix(), k.Name)
	default:
		return l.clientPlace(role, k.Name)
	}
}

func (l *linter) unknownFlow(source, rest string, val value) {
	target := rest
	for _, alias := range l.aliases {
		if strings.HasPrefix(rest, string(alias)+".") {
			target = string(alias)
		}
	}
	if target == rest {
		target, _, _ = strings.Cut(rest, ".")
	}
	for _, alias := range []string{source, target} {
		if !slices.Contains(l.aliases, mirror.ClusterAlias(alias)) {
			l.doubtful(val.Origin, l.aliasHint(alias), "flow of a cluster that is not among clusters: %q", alias)
			return
		}
	}
	l.doubtful(val.Origin, "", "a flow from %s to itself is none", source)
}

func (l *linter) aliasHint(alias string) string {
	var names []string
	for _, a := range l.aliases {
		names = append(names, string(a))
	}
	for _, a := range names {
		if strings.EqualFold(a, trim(alias)) {
			return "aliases are case-sensitive and hold no blanks: " + a
		}
	}
	if meant := suggest(alias, names); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "add it to clusters"
}

// namesAt are all names that may stand at the place, for suggestions.
func (l *linter) namesAt(s Scope) []string {
	var names []string
	for name, k := range l.keys.exact {
		if k.Scope&s != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (l *linter) clientNames(role Roles) []string {
	var names []string
	for name, k := range l.keys.clients {
		if k.Roles&role != 0 {
			names = append(names, name)
		}
	}
	for name := range connectionNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// String lists the kinds of clients.
func (r Roles) String() string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// first is the kind of client a key is mostly used for.
func (r Roles) first() string {
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			return name
		}
	}
	return ""
}
