package config

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// docsHead is the part of docs/configuration.md that is written by hand.
//
//go:embed docs_head.md
var docsHead string

// Docs renders docs/configuration.md: the text about both forms, and every key
// of the catalogue.
func Docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	for _, section := range []struct {
		title, intro string
		keys         []Key
	}{
		{"The whole file", "", driverKeys},
		{"Clusters: connections", "These may also follow `X.consumer.`, `X.producer.` and `X.admin.`, for one kind of client. A cluster's own key beats the top level's.", connectionKeys},
		{"Clusters: as the target of flows", "`X` is the flow's target. The keys of storage topics and converters may stand at the top level, where they beat `X.key`, as in MirrorMaker.", workerKeys},
		{"Flows: topics and records", "", sourceKeys},
		{"Flows: consumer groups", "", checkpointKeys},
		{"Flows: heartbeats", "", heartbeatKeys},
		{"Flows: keys of Kafka Connect", "", frameworkKeys},
		{"heliograph's own keys", "MirrorMaker ignores them, so a file may hold them and still be run by it.", ownKeys},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n", section.title)
		if section.intro != "" {
			b.WriteString(section.intro + "\n\n")
		}
		b.WriteString("| key | type | default | where | since | what it does |\n|---|---|---|---|---|---|\n")
		for _, k := range section.keys {
			b.WriteString(k.row())
		}
	}
	b.WriteString("\n### Clients\n\nAfter `X.consumer.`, `X.producer.`, `X.admin.`, `S->T.source.consumer.`, `S->T.target.admin.` and their like, and `S->T.producer.override.`.\n\n")
	b.WriteString("| key | type | clients | what it does |\n|---|---|---|---|\n")
	keys := slices.Clone(clientKeys)
	slices.SortStableFunc(keys, func(a, b ClientKey) int { return cmp.Compare(a.Effect, b.Effect) })
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Type, k.Roles, about(k.Effect, k.Why, k.Doc, k.Values))
	}
	return b.String()
}

func (k *Key) row() string {
	def := code(k.Default)
	if k.Java != "" {
		def = strings.TrimSpace(def + " (MirrorMaker: " + code(k.Java) + ")")
	}
	since := k.Since
	if k.Until != "" {
		since = strings.TrimSpace(since + " until " + k.Until)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", k.Name, k.Type, def, k.Scope, since, about(k.Effect, k.Why, k.Doc, k.Values))
}

// about is what a key does, in a cell of a table.
func about(e Effect, why, doc string, values []string) string {
	if len(values) > 0 {
		doc = strings.TrimSpace("One of " + code(strings.Join(values, "`, `")) + ". " + doc)
	}
	switch e {
	case Honoured, Unread:
	case NoEffect:
		doc = "Accepted, has no effect: " + why + ". " + doc
	case Refused:
		doc = "**Refused** otherwise: " + why + ". " + doc
		if len(values) == 0 {
			doc = strings.Replace(doc, "**Refused** otherwise", "**Refused**", 1)
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(doc, "|", `\|`))
}

// code sets text as code, in a cell of a table.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}
