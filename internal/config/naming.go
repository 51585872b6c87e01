package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/mirror"
)

// policyClasses are the names under which the two policies go in files.
var policyClasses = map[string]bool{ // true: identity
	"DefaultReplicationPolicy":  false,
	"IdentityReplicationPolicy": true,
	"default":                   false,
	"identity":                  true,
}

// policyPackages are where those classes live; others may do anything.
var policyPackages = []string{mirrorPackage, "io.strimzi.kafka.connect.mirror.", ""}

// isIdentity says whether the class is the identity policy; ok is false for
// classes that are not known.
func isIdentity(class string) (identity, ok bool) {
	for _, pkg := range policyPackages {
		if name, found := strings.CutPrefix(class, pkg); found {
			if identity, ok = policyClasses[name]; ok {
				return identity, true
			}
		}
	}
	return false, false
}

var topicCharacters = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// naming reads the replication policy of a flow.
func (b *builder) naming(f *Flow, r *reader) {
	n := Naming{Separator: mirror.DefaultSeparator}
	class := r.text("replication.policy.class", mirrorPackage+"DefaultReplicationPolicy")
	identity, ok := isIdentity(class)
	if !ok {
		b.errorf(r.view["replication.policy.class"].Origin,
			"use DefaultReplicationPolicy, which prefixes topics with the source's alias, or IdentityReplicationPolicy, which keeps their names",
			"replication policy %s is not known, and guessing it could write into the wrong topics", class)
	}
	n.Identity = identity
	n.Baseline = r.choice("heliograph.compatibility", "4", "3.9", "4") == "3.9"
	sep, set := r.get("replication.policy.separator")
	if set {
		n.Separator = b.separator(sep)
	}
	alias := r.view["source.cluster.alias"]
	if f.Enabled {
		b.alias(f.ID, alias, n, set)
		b.targetAlias(f.ID, r.view["target.cluster.alias"])
	}
	if n.Separator == "" {
		switch {
		case n.Identity:
			b.warnf(sep.Origin, "remove it", `an empty separator would name heartbeats of %s without one; "." is used`, f.ID.Source)
		case !alias.Origin.IsDefault() && trim(alias.Text) == "":
			b.warnf(sep.Origin, "write replication.policy.class = "+mirrorPackage+"IdentityReplicationPolicy",
				"an empty alias with an empty separator is taken as identity naming: topics keep their names")
			n.Identity = true
		case f.Enabled:
			b.errorf(sep.Origin, "choose a separator, or replication.policy.class = "+mirrorPackage+"IdentityReplicationPolicy to keep names",
				"with an empty separator no name tells where its topic came from")
		}
		n.Separator = mirror.DefaultSeparator
	}
	n.InternalSeparator = n.Separator
	if !r.boolean("replication.policy.internal.topic.separator.enabled", true) {
		n.InternalSeparator = mirror.DefaultSeparator
	}
	r.note("replication.policy.separator", n.Separator, sep.Origin)
	if f.Enabled && set && !n.Identity && n.Separator != mirror.DefaultSeparator {
		b.warnf(sep.Origin, "", "a source topic that is already called %s%sx is taken as a copy from %s and not as one of its own",
			f.ID.Source, n.Separator, f.ID.Source)
	}
	f.Naming = n
	options := mirror.PolicyOptions{
		Separator: n.Separator, InternalSeparator: n.InternalSeparator, Aliases: b.aliases,
		Source: f.ID.Source, BaselineInternal: n.Baseline,
	}
	if n.Identity {
		f.Policy = mirror.NewIdentityPolicy(options)
	} else {
		f.Policy = mirror.NewDefaultPolicy(options)
	}
}

// separator is used raw by MirrorMaker; blanks in it could never be part of a
// topic's name, so they go.
func (b *builder) separator(val value) string {
	sep := trim(val.Text)
	if sep != val.Text && sep != "" {
		b.warnf(val.Origin, "", "blanks around the separator are left out; MirrorMaker would use them and create no topic")
	}
	if !topicCharacters.MatchString(sep) {
		b.errorf(val.Origin, "letters, digits, dots, dashes and underscores", "%q cannot be part of a topic's name", sep)
		return mirror.DefaultSeparator
	}
	return sep
}

// alias judges source.cluster.alias, which would rename the source in a flow.
func (b *builder) alias(id mirror.FlowID, val value, n Naming, separatorSet bool) {
	text := trim(val.Text)
	switch {
	case val.Origin.IsDefault() || text == string(id.Source):
	case n.Identity:
		b.warnf(val.Origin, "remove it", "ignored: bookkeeping of %s names the source %s", id, id.Source)
	case text == "" && separatorSet && n.Separator == "": // identity naming of old; said at the separator
	case text == "":
		b.errorf(val.Origin, "remove it; to keep names use replication.policy.class = "+mirrorPackage+"IdentityReplicationPolicy",
			"an empty alias would create topics such as %q", n.Separator+"orders")
	default:
		b.errorf(val.Origin, "rename the cluster in clusters instead",
			"it would prefix topics of %s with %q in place of %q", id, text, id.Source)
	}
}

func (b *builder) targetAlias(id mirror.FlowID, val value) {
	if !val.Origin.IsDefault() && trim(val.Text) != string(id.Target) {
		b.warnf(val.Origin, "remove it", "ignored: the target of %s is called %s", id, id.Target)
	}
}

// checkAliases refuses aliases that could not be part of the names they must be part of.
func (b *builder) checkAliases(list value, flows []Flow) {
	for i := range flows {
		f := &flows[i]
		if !f.Enabled {
			continue
		}
		if !topicCharacters.MatchString(string(f.ID.Source)) {
			b.errorf(list.Origin, aliasHint(list), "alias %q cannot be part of a topic's name, as its positions and copies need", f.ID.Source)
		}
		if !topicCharacters.MatchString(string(f.ID.Target)) && f.OffsetSyncs.Enabled && f.OffsetSyncs.OnSource {
			b.errorf(list.Origin, aliasHint(list), "alias %q cannot be part of a topic's name, as its offset syncs on %s need (offset-syncs.topic.location = target does not)",
				f.ID.Target, f.ID.Source)
		}
	}
}

func aliasHint(list value) string {
	return commentHint(list, "letters, digits, dots, dashes and underscores")
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func sortedSettings(m map[string]Setting) []Setting {
	out := make([]Setting, 0, len(m))
	for _, s := range m {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return out
}
