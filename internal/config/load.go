package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// DefaultMemoryBytes and defaultMetricsAddress are the process's defaults, as
// the catalogue shows them.
const (
	DefaultMemoryBytes    = 64 << 20
	defaultMetricsAddress = ":9404"
)

// Load reads a file and returns the deployment it describes, with all problems.
// It never returns nil; with an error among the problems the deployment must
// not be run.
//
// A name that ends in .yaml or .yml is the native form; everything else is
// MirrorMaker's properties.
func Load(src Source) *Deployment {
	var r report
	if foreign := recognise(src.Bytes); foreign != "" && (foreign != plainJSON || !isYAML(src.Name)) {
		r.errorf(Origin{File: src.Name, Line: 1}, "convert it: heliograph import "+src.Name+" --to heliograph.yaml", "this is %s", foreign)
		return &Deployment{Clusters: map[mirror.ClusterAlias]Cluster{}, Problems: r.problems}
	}
	entries := parse(src, &r)
	return r.load(src, entries, isYAML(src.Name))
}

// load resolves entries. The report already holds what was said while they were read.
func (r *report) load(src Source, entries []Entry, strict bool) *Deployment {
	d := &Deployment{Clusters: map[mirror.ClusterAlias]Cluster{}}
	defer func() {
		r.problems.sort()
		d.Problems = r.problems
	}()
	raw := collect(entries, r)
	if r.problems.HasErrors() && len(raw) == 0 {
		return d
	}
	providers := newProviders(src, raw, r)
	for _, key := range raw.ordered() {
		raw[key] = providers.resolve(raw[key], r)
	}
	keys := newCatalogue()
	d.Aliases = aliases(src, raw, r)
	b := &builder{report: r, resolver: resolver{raw: raw, keys: keys}, aliases: d.Aliases, compiled: map[string]mirror.Patterns{}}
	pairs := b.pairs(d.Aliases)
	l := &linter{report: r, keys: keys, raw: raw, aliases: d.Aliases, flows: flowsForHints(pairs, d.Aliases), strict: src.Strict || strict, effects: map[string]Effect{}}
	if strict, ok := raw["heliograph.strict"].boolean(); ok && strict {
		l.strict = true
	}
	l.findPlaceholders()
	if len(d.Aliases) == 0 {
		return d
	}
	l.run()
	if src.uses != nil {
		*src.uses = l.uses(entries)
	}
	d.Process = process(raw, l.strict)
	for _, alias := range d.Aliases {
		d.Clusters[alias] = b.clusterModel(alias, src.Name)
	}
	for _, p := range pairs {
		d.Flows = append(d.Flows, b.flow(p))
	}
	b.checkAliases(raw["clusters"], d.Flows)
	b.check(src, d)
	return d
}

func isYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func parse(src Source, r *report) []Entry {
	var entries []Entry
	var problems Problems
	if isYAML(src.Name) {
		entries, problems = parseYAML(src.Name, src.Bytes)
	} else {
		entries, problems = ParseProperties(src.Name, src.Bytes)
	}
	for _, p := range problems {
		r.add(p.Severity, Origin{File: p.File, Line: p.Line, Column: p.Column, Key: p.Key}, p.Message, p.Hint)
	}
	return entries
}

// collect makes a map of the entries; of a repeated key the last one wins.
func collect(entries []Entry, r *report) view {
	raw := view{}
	for _, e := range entries {
		if old, ok := raw[e.Key]; ok {
			if old.Raw == e.Value {
				r.infof(old.Origin, "remove one", "written again on line %d", e.Origin.Line)
			} else {
				r.warnf(old.Origin, "remove one", "written again on line %d with another value, which wins", e.Origin.Line)
			}
		}
		raw[e.Key] = value{Raw: e.Value, Text: e.Value, Items: e.Items, Origin: e.Origin, Lost: e.Lost, Literal: e.literal, Referenced: e.literal}
	}
	return raw
}

// aliases reads clusters.
func aliases(src Source, raw view, r *report) []mirror.ClusterAlias {
	val, ok := raw["clusters"]
	if !ok {
		if class, ok := raw["connector.class"]; ok {
			r.errorf(class.Origin, "an mm2.properties file names its clusters and the flows between them: clusters = A, B",
				"clusters is missing: this is the configuration of one Connect connector (%s), not an mm2.properties file", simpleName(trim(class.Text)))
			return nil
		}
		used := clustersInUse(raw)
		at, hint := Origin{File: src.Name, Key: "clusters"}, "write clusters = A, B"
		if len(used) > 0 {
			hint = "write clusters = " + joinAliases(used)
		}
		for _, key := range raw.ordered() {
			if suggest(key, []string{"clusters"}) != "" {
				at.Line, hint = raw[key].Origin.Line, "did you mean clusters where "+key+" stands?"
			}
		}
		r.errorf(at, hint, "clusters is missing")
		return used
	}
	var out []mirror.ClusterAlias
	for _, item := range val.list() {
		if i := strings.IndexByte(item, '#'); i > 0 && isBlank(rune(item[i-1])) {
			r.errorf(val.Origin, commentHint(value{Text: item}, ""), "an alias would be %q", item)
			item = item[:i]
		}
		alias := mirror.ClusterAlias(trim(item))
		switch {
		case alias == "":
			r.warnf(val.Origin, "remove the comma", "an empty alias is left out")
		case !slices.Contains(out, alias):
			out = append(out, alias)
		}
	}
	if len(out) < 2 && !src.parts {
		r.errorf(val.Origin, "separate aliases by commas", "at least two clusters are needed, and %d is named", len(out))
	}
	return out
}

func joinAliases(aliases []mirror.ClusterAlias) string {
	names := make([]string, len(aliases))
	for i, a := range aliases {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// flowsForHints are the flows whose names make hints useful.
func flowsForHints(pairs []pair, aliases []mirror.ClusterAlias) []mirror.FlowID {
	var enabled, all []mirror.FlowID
	for _, p := range pairs {
		if p.enabled {
			enabled = append(enabled, p.id)
		}
		all = append(all, p.id)
	}
	switch {
	case len(enabled) > 0:
		return enabled
	case len(all) == 0 && len(aliases) > 1:
		return []mirror.FlowID{{Source: aliases[0], Target: aliases[1]}}
	}
	return all
}

func process(raw view, strict bool) Process {
	p := Process{MemoryBytes: DefaultMemoryBytes, MetricsAddress: defaultMetricsAddress, Strict: strict}
	if n, err := parseSize(raw["heliograph.memory.bytes"].Text); err == nil {
		p.MemoryBytes = n
	}
	p.BytesPerSecond = rate(raw["heliograph.rate.bytes.per.second"])
	if val, ok := raw["heliograph.metrics.address"]; ok {
		p.MetricsAddress = trim(val.Text)
		if strings.EqualFold(p.MetricsAddress, "off") {
			p.MetricsAddress = ""
		}
	}
	return p
}

func (b *builder) clusterModel(alias mirror.ClusterAlias, file string) Cluster {
	v := b.cluster(string(alias))
	c := Cluster{Alias: alias, Origin: b.raw["clusters"].Origin}
	servers, ok := v["bootstrap.servers"]
	if ok {
		c.Origin = servers.Origin
	} else {
		b.errorf(Origin{File: file, Line: c.Origin.Line, Key: string(alias) + ".bootstrap.servers"},
			commentHint(b.raw["clusters"], "add it"), "cluster %q has no brokers", alias)
	}
	c.Connection = b.connection(v, c.Origin)
	b.unusedSecurity(alias, c.Protocol)
	if val, ok := b.raw[string(alias)+".heliograph.rate.bytes.per.second"]; ok {
		c.BytesPerSecond = rate(val)
	}
	c.properties = map[string]string{}
	for key, val := range b.raw {
		if name, ok := strings.CutPrefix(key, string(alias)+"."); ok {
			c.properties[name] = val.Text
		} else if _, own := b.raw[string(alias)+"."+key]; isConnectionKey(key) && !own {
			c.properties[key] = val.Text
		}
	}
	return c
}

// unusedSecurity speaks of a cluster's own login or certificates that its
// protocol never uses.
func (b *builder) unusedSecurity(alias mirror.ClusterAlias, p Protocol) {
	for _, group := range []struct {
		keys, protocols string
		used            bool
	}{
		{"sasl.mechanism sasl.jaas.config", "SASL_SSL or SASL_PLAINTEXT", p.UsesSASL()},
		{"ssl.truststore.location ssl.keystore.location ssl.truststore.certificates ssl.keystore.certificate.chain", "SSL or SASL_SSL", p.UsesTLS()},
	} {
		for key := range strings.FieldsSeq(group.keys) {
			val, ok := b.raw[string(alias)+"."+key]
			if ok && !group.used {
				b.warnf(val.Origin, fmt.Sprintf("set %s.security.protocol to %s", alias, group.protocols), "not used: security.protocol of %s is %s", alias, p)
				break
			}
		}
	}
}

// findPlaceholders speaks of what a template left to fill in.
func (l *linter) findPlaceholders() {
	for _, key := range l.raw.ordered() {
		p, val := l.place(key), l.raw[key]
		if k := l.keys.find(p.name); k != nil && k.Type == TypePatterns || strings.HasSuffix(p.name, "sasl.jaas.config") {
			continue // named groups look alike; logins are looked at option by option
		}
		found := placeholdersIn(val.Raw)
		switch {
		case len(found) == 0:
		case l.keys.secret(key):
			l.errorf(val.Origin, "fill in the template", "a placeholder is left in")
		default:
			l.errorf(val.Origin, "fill in the template", "the placeholder %s is left in", strings.Join(found, ", "))
		}
	}
}
