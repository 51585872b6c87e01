package verify

import (
	"fmt"
	"strings"
)

// Kind is what a difference is.
type Kind string

// The kinds.
const (
	// Missing are source records that the target lacks.
	Missing Kind = "missing"
	// Extra are target records that the source lacks at that place.
	Extra Kind = "extra"
	// Duplicate are target records that repeat ones before them.
	Duplicate Kind = "duplicate"
	// Foreign are extra target records under another producer id than those of
	// the records that were copied.
	Foreign Kind = "foreign"
	// Changed are records with another content at the same place.
	Changed Kind = "changed"
	// Reordered are the same records in another order.
	Reordered Kind = "reordered"
)

// A Difference is a stretch in which two logs disagree. Its place is told on both
// sides: where the records lie, or where they should.
type Difference struct {
	Kind Kind `json:"kind"`
	// SourceOffset is the first source record of the stretch, or, where the source
	// has none in it, the one that follows; TargetOffset likewise. -1 is the log's end.
	SourceOffset  int64 `json:"source_offset"`
	TargetOffset  int64 `json:"target_offset"`
	SourceRecords int64 `json:"source_records"` // in the stretch
	TargetRecords int64 `json:"target_records"`
	// Producer wrote the first target record of the stretch, -1 for none.
	Producer int64 `json:"target_producer_id"`
	// Original is the source offset whose record a duplicate repeats, -1 otherwise.
	Original int64 `json:"original_source_offset"`
	// Fields says in which parts two records differ, where that was looked up.
	Fields []string `json:"fields,omitempty"`
	// Known is what the loss ledger says of the stretch.
	Known string `json:"known,omitempty"`
	// Source and Target are the first records, where the caller asked to see them.
	Source *Shown `json:"source_record,omitempty"`
	Target *Shown `json:"target_record,omitempty"`
}

// noOffset is the offset, or the producer id, of what is not there.
const noOffset int64 = -1

// at names a place in a partition for people.
func at(partition string, offset int64) string {
	if offset == noOffset {
		return "the end of " + partition
	}
	return fmt.Sprintf("%s offset %d", partition, offset)
}

// text is the difference in a line; source and target name the partitions.
func (d *Difference) text(source, target string) string {
	var b strings.Builder
	from, to := at(source, d.SourceOffset), at(target, d.TargetOffset)
	switch d.Kind {
	case Missing:
		fmt.Fprintf(&b, "%s missing: %s; would be at %s", records(d.SourceRecords), from, to)
	case Extra, Duplicate, Foreign:
		fmt.Fprintf(&b, "%s %s: %s; beside %s", records(d.TargetRecords), d.Kind, to, from)
		if d.Kind == Duplicate {
			fmt.Fprintf(&b, "; repeats %s", at(source, d.Original))
		}
		if d.Kind == Foreign {
			fmt.Fprintf(&b, "; written by producer id %d", d.Producer)
		}
	case Changed, Reordered:
		fmt.Fprintf(&b, "%s %s: %s against %s", records(d.SourceRecords), d.Kind, from, to)
	}
	if len(d.Fields) > 0 {
		fmt.Fprintf(&b, "; in %s", strings.Join(d.Fields, ", "))
	}
	if d.Known != "" {
		fmt.Fprintf(&b, "; the loss ledger names it: %s", d.Known)
	}
	return b.String()
}

func records(n int64) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}
