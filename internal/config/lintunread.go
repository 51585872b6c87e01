package config

import (
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// providerParams are what the built-in config providers read.
var providerParams = []string{"class", "param.allowed.paths", "param.allowlist.pattern"}

// providerKey checks config.providers.<name>.<param>: the family is known, and
// what no provider of this file reads is not.
func (l *linter) providerKey(p place, val value) {
	rest, ok := strings.CutPrefix(p.name, "config.providers.")
	if !ok || p.scope != ScopeTop {
		return
	}
	name, param, _ := strings.Cut(rest, ".")
	declared := l.raw["config.providers"].list()
	switch {
	case !slices.Contains(declared, name):
		hint := "add " + name + " to config.providers"
		if meant := suggest(name, declared); meant != "" {
			hint = "did you mean config.providers." + meant + "." + param + "?"
		}
		l.doubtful(val.Origin, hint, "config provider %q is not declared; nothing reads it", name)
	case !slices.Contains(providerParams, param):
		hint := ""
		if meant := suggest(param, providerParams); meant != "" {
			hint = "did you mean config.providers." + name + "." + meant + "?"
		}
		l.doubtful(val.Origin, hint, "not a parameter of the built-in config providers; nothing reads it")
	}
}

// idleFlows speaks of keys of pairs that do not replicate beside others that do,
// at the first of each pair. Heartbeats are written all the same.
func (l *linter) idleFlows() {
	var ofFlows []place
	some, everyPair := false, isTrue(l.raw["enabled"])
	for _, key := range l.raw.ordered() {
		if p := l.place(key); p.scope == ScopeFlow {
			ofFlows = append(ofFlows, p)
			some = some || p.name == "enabled" && isTrue(l.raw[key])
		}
	}
	said := map[mirror.FlowID]bool{}
	for _, p := range ofFlows {
		if !some || said[p.id] || p.name == "enabled" || strings.Contains(p.name, "heartbeats") {
			continue
		}
		val := l.raw[p.prefix()+p.name]
		said[p.id] = true
		on, set := l.raw[p.prefix()+"enabled"]
		switch {
		case isTrue(on) || everyPair:
		case set:
			l.infof(val.Origin, "", "no effect on records: %s is switched off on line %d", p.id, on.Origin.Line)
		default:
			l.doubtful(val.Origin, "write "+p.prefix()+"enabled = true, or false if that is meant", "%s is not enabled, so nothing is copied by it", p.id)
		}
	}
}

// clustersInUse are the aliases that keys are written for, for a file that does
// not say clusters: so its other problems are found as well.
func clustersInUse(raw view) []mirror.ClusterAlias {
	var out []mirror.ClusterAlias
	for _, key := range raw.ordered() {
		alias, ok := strings.CutSuffix(key, ".bootstrap.servers")
		if last := alias[strings.LastIndexByte(alias, '.')+1:]; ok && !strings.Contains(alias, "->") && !slices.Contains(roleNames, last) && last != "cluster" {
			out = append(out, mirror.ClusterAlias(alias))
		}
	}
	return out
}
