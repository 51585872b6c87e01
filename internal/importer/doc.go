// Package importer reads what other tools call a replication and writes it in
// heliograph's native YAML, with a note for every setting.
//
// It is pure: bytes in, a document and notes out. It opens no file and asks for
// no variable; references to secrets stay references.
//
// The walk:
//
//	bytes ── recognise ──▶ a format: properties, strimzi, connect, aiven, ovh
//	      ── its reader ─▶ a draft: settings in the words of an mm2.properties,
//	                       each with the place it came from
//	      ── settle ─────▶ what nothing reads is dropped, old names are renamed;
//	                       config.Review is the judge
//	      ── secrets ────▶ replaced by references, where asked for
//	      ── write ──────▶ YAML, read back by config.Load
//
// The words: a setting is one key and value on its way; a note says what became
// of one thing that the original said: kept, changed, dropped, added, missing,
// or a remark about the whole.
//
// Invariants:
//   - The document means what the original meant. What cannot be said in it is
//     missing, never left out in silence.
//   - Every field and key of the input is named by a note.
//   - Notes, and comments in the document, hold no secret.
package importer
