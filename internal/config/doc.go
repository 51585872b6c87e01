// Package config turns the bytes of a configuration file into a validated,
// typed [Deployment]: MirrorMaker 2's properties, or the native YAML form of
// the same keys.
//
// It is pure: it opens no file, asks for no variable and reads no clock. What a
// config provider needs is injected by the caller in a [Source].
//
// The walk:
//
//	bytes ── ParseProperties / parseYAML ──▶ entries with file, line and key
//	      ── providers ────────────────────▶ ${name:path:key} replaced, the reference kept
//	      ── resolver ─────────────────────▶ views: cluster(X), worker(S->T), connector(S->T), client layers
//	      ── lint (the catalogue) ─────────▶ misspelt, misplaced and unsupported keys
//	      ── build ────────────────────────▶ Deployment: clusters, flows, clients
//	      ── check ────────────────────────▶ loops, contradictions, placeholders
//
// The words: an [Origin] says where a value was written; a view is a map of
// resolved keys, each with its origin; the [Catalogue] is the one table of keys
// that drives validation, suggestions and docs/configuration.md.
//
// Invariants:
//   - [Load] reports every problem it finds, not the first only.
//   - No key of a file vanishes: it is honoured, or a [Problem] names it and says why not.
//   - A [Secret] never leaves the package as text except through [Secret.Reveal].
package config
