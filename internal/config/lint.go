package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heliograph/internal/mirror"
)

// linter checks every key of a file against the catalogue: is it known, may it
// stand here, can its value be read, and what becomes of it.
type linter struct {
	*report
	keys    *catalogue
	raw     view
	aliases []mirror.ClusterAlias
	flows   []mirror.FlowID // enabled ones, for hints; all pairs where none is
	strict  bool
	effects map[string]Effect // what became of the keys that say nothing, for [Review]
}

// place is where a key stands, taken apart.
type place struct {
	scope Scope
	alias mirror.ClusterAlias // of a cluster key
	id    mirror.FlowID       // of a flow key
	name  string              // without alias or flow
}

// prefix is what stands before the name.
func (p place) prefix() string {
	switch p.scope {
	case ScopeCluster:
		return string(p.alias) + "."
	case ScopeFlow:
		return p.id.String() + "."
	default:
		return ""
	}
}

// place finds where the key stands. The longest alias wins, so that aliases may
// hold dots; a known top-level key wins over a cluster of the same first word.
func (l *linter) place(key string) place {
	best := place{scope: ScopeTop, name: key}
	for _, source := range l.aliases {
		for _, target := range l.aliases {
			id := mirror.FlowID{Source: source, Target: target}
			if rest, ok := strings.CutPrefix(key, id.String()+"."); ok && source != target && (best.scope != ScopeFlow || len(rest) < len(best.name)) {
				best = place{scope: ScopeFlow, id: id, name: rest}
			}
		}
	}
	if best.scope == ScopeFlow {
		return best
	}
	if k := l.keys.find(key); k != nil && k.Scope&ScopeTop != 0 {
		return best
	}
	for _, alias := range l.aliases {
		if rest, ok := strings.CutPrefix(key, string(alias)+"."); ok && (best.scope != ScopeCluster || len(rest) < len(best.name)) {
			best = place{scope: ScopeCluster, alias: alias, name: rest}
		}
	}
	return best
}

// idle speaks of a key that is accepted and does nothing.
func (l *linter) idle(at Origin, why string) {
	l.effects[at.Key] = NoEffect
	l.infof(at, "", "accepted, has no effect: %s", why)
}

// doubtful speaks of a key that nothing reads: a warning, or an error in strict mode.
func (l *linter) doubtful(at Origin, hint, format string, args ...any) {
	l.effects[at.Key] = Unread
	severity := Warning
	if l.strict {
		severity = Error
	}
	l.add(severity, at, fmt.Sprintf(format, args...), hint)
}

// run checks all keys.
func (l *linter) run() {
	for _, key := range l.raw.ordered() {
		p, val := l.place(key), l.raw[key]
		if k := l.keys.find(p.name); k != nil && k.Scope&p.scope != 0 {
			l.known(k, p, val)
			l.providerKey(p, val)
			continue
		}
		if l.clientLayer(p, val) {
			continue
		}
		if k := l.keys.find(p.name); k != nil {
			l.misplaced(k, p, val)
			continue
		}
		l.unknown(p, val)
	}
	l.idleFlows()
}

// known checks a key that stands where it is read.
func (l *linter) known(k *Key, p place, val value) {
	if k.Name == policiesKey+".*" {
		l.policy(p, val)
		return
	}
	if !l.readable(k.Type, k.Values, p.name, val) {
		return
	}
	if k.Name == policiesKey {
		l.policies(val)
	}
	switch k.Effect {
	case NoEffect:
		l.idle(val.Origin, k.Why)
	case Refused:
		l.refused(k, val)
	case Honoured, Unread: // the rows of the catalogue are none of the latter
		if k.Until != "" {
			l.superseded(p, val)
		}
	}
}

// refused speaks of a key that cannot be honoured, unless its value changes nothing.
func (l *linter) refused(k *Key, val value) {
	text := trim(val.Text)
	switch {
	case k.Name == "source.cluster.alias" || k.Name == "target.cluster.alias":
		return // judged per flow, where the alias it must equal is known
	case text == "" && k.Type != TypeClass, len(k.Values) > 0: // readable has checked the value
		l.effects[val.Origin.Key] = NoEffect
		return
	}
	l.effects[val.Origin.Key] = Refused
	l.errorf(val.Origin, "remove it", "%s cannot be honoured: %s", val.shown(false), k.Why)
}

// superseded speaks of old names that are still read.
func (l *linter) superseded(p place, val value) {
	name, ok := strings.CutSuffix(p.name, ".blacklist")
	if !ok {
		return
	}
	name += ".exclude"
	for _, key := range []string{p.prefix() + name, name} {
		if other, ok := l.raw[key]; ok {
			l.effects[val.Origin.Key] = Unread
			l.warnf(val.Origin, "remove it", "ignored: %s on line %d has replaced it", key, other.Origin.Line)
			return
		}
	}
	l.warnf(val.Origin, "rename it to "+p.prefix()+name, "old name of %s; still read here, ignored by MirrorMaker from 4.0 on", name)
}

// readable says whether the value can be read as its type; if not it is an error.
func (l *linter) readable(t Type, values []string, name string, val value) bool {
	if val.Unresolved {
		return false // without a value; said where it was looked up
	}
	if val.Items != nil && t != TypePatterns && t != TypeList {
		l.errorf(val.Origin, "write it without brackets", "a list where one value must stand")
		return false
	}
	switch t {
	case TypePatterns:
		return l.patterns(val)
	case TypeList, TypeSecret:
		return true
	case TypeClass:
		return l.class(values, val)
	case TypeString:
		return l.word(values, name, val)
	case TypeBool:
		return l.boolean(name, val)
	case TypeSize:
		if strings.EqualFold(trim(val.Text), "unlimited") {
			return true
		}
		if _, err := parseSize(val.Text); err != nil {
			l.errorf(val.Origin, commentHint(val, "a number of bytes, with KiB, MiB or GiB if you like, or unlimited"), "%q is not a size that fits", val.said())
			return false
		}
		return true
	default:
		return l.number(t, name, val)
	}
}

func (l *linter) boolean(name string, val value) bool {
	if _, ok := val.boolean(); ok {
		return true
	}
	selects := name == "enabled" || name == "emit.heartbeats.enabled"
	if first, _, _ := strings.Cut(trim(val.Text), " "); selects && strings.EqualFold(first, "false") {
		l.warnf(val.Origin, commentHint(val, "write false alone"), "%q is read as false", val.said())
		return false
	}
	l.errorf(val.Origin, commentHint(val, "true or false"), "%q is neither true nor false", val.said())
	return false
}

// numberBits is the size of the numbers that are not of 64 bits.
var numberBits = map[Type]int{TypeInt: 32, TypeFactor: 16}

func (l *linter) number(t Type, name string, val value) bool {
	bits := cmp.Or(numberBits[t], 64)
	if name == "heliograph.retention.hold.hours" && strings.EqualFold(trim(val.Text), "off") {
		return true
	}
	n, ok := val.integer(bits)
	if !ok {
		l.errorf(val.Origin, commentHint(val, "a whole number"), "%q is not a number that fits", val.said())
		return false
	}
	switch {
	case t == TypeFactor && n != -1 && n < 1:
		l.errorf(val.Origin, "-1 for the broker's default, or 1 and more", "%d is not a replication factor", n)
		return false
	case t == TypeSeconds:
		l.interval(n, val)
	case n < 0 && (name == "offset.lag.max" || strings.HasPrefix(name, "heliograph.")), n < 1 && name == "tasks.max":
		l.errorf(val.Origin, "", "%d is too small", n)
		return false
	case name == "offset.storage.partitions" && n != -1 && n < 1:
		l.errorf(val.Origin, "-1 for the broker's default, or 1 and more", "%d partitions cannot be", n)
		return false
	case name == "offset.flush.interval.ms" && n < 1:
		l.errorf(val.Origin, "", "positions must be written now and then")
		return false
	}
	return true
}

const day = 24 * 60 * 60

func (l *linter) interval(n int64, val value) {
	switch {
	case n > day && n <= int64(time.Duration(1<<63-1)/time.Second):
		hint := "the unit is seconds"
		if n%1000 == 0 {
			hint += fmt.Sprintf("; if milliseconds were meant, write %d", n/1000)
		}
		l.warnf(val.Origin, hint, "%d seconds are %s", n, humanDuration(time.Duration(n)*time.Second))
	case n > day:
		l.errorf(val.Origin, "the unit is seconds", "%d seconds are too long", n)
	case n == 0:
		l.warnf(val.Origin, "write the matching .enabled = false", "an interval of 0 is read as off; MirrorMaker would fail or run without a pause")
	case n < 0:
		l.infof(val.Origin, "write the matching .enabled = false", "a negative interval switches the job off")
	}
}

// word checks a string against the values there are.
func (l *linter) word(values []string, name string, val value) bool {
	if name == "bootstrap.servers" {
		return true
	}
	text := trim(val.Text)
	if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, text) }) {
		return true
	}
	if name == "use.defaults.from" {
		l.warnf(val.Origin, "source or target", "%q is read as target", val.said())
		return true
	}
	hint := "one of " + strings.Join(values, ", ")
	if meant := suggest(text, values); meant != "" {
		hint = "did you mean " + meant + "? " + hint
	}
	l.errorf(val.Origin, commentHint(val, hint), "%q is not a value of it", val.said())
	return false
}

// class checks the name of a JVM class against those that are built in.
func (l *linter) class(values []string, val value) bool {
	text := trim(val.Text)
	if len(values) == 0 || slices.Contains(values, simpleName(text)) {
		return true
	}
	l.errorf(val.Origin, "remove it, or use "+strings.Join(values, " or "), "class %s cannot be run here: %s", val.said(), jvmOnly)
	return false
}

// commentHint replaces the hint where the value ends in what looks like a comment.
func commentHint(val value, otherwise string) string {
	text := val.said()
	if i := strings.IndexAny(text, "#!"); i > 0 && isBlank(rune(text[i-1])) {
		return fmt.Sprintf("this format has no comments at the end of a line; write %s alone", trim(text[:i]))
	}
	return otherwise
}
