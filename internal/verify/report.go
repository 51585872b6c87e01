package verify

import (
	"fmt"
	"strings"

	"heliograph/internal/kafka"
)

// Verdict is the answer for a partition, a topic, a flow or all of them.
type Verdict string

// The verdicts.
const (
	// Equal is a proof: every record has its equal.
	Equal Verdict = "equal"
	// Different says that there is at least one difference.
	Different Verdict = "different"
	// Unknown says that neither could be shown, see the reason.
	Unknown Verdict = "unknown"
)

// Worse is the verdict of two parts together.
func Worse(a, b Verdict) Verdict {
	switch {
	case a == Different || b == Different:
		return Different
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return Equal
}

// Method is how a partition was compared.
type Method string

// The methods.
const (
	// Sequence compares record by record in order.
	Sequence Method = "record by record"
	// LastValues compares the last value of each key.
	LastValues Method = "last value of each key"
)

// Range is a stretch of offsets, [From, To).
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Partition is what was found in one partition.
type Partition struct {
	Topic     string  `json:"topic"` // on the source
	Copy      string  `json:"copy"`  // on the target
	Partition int32   `json:"partition"`
	Verdict   Verdict `json:"verdict"`
	// Reason says why the verdict is unknown, or what it does not cover.
	Reason string `json:"reason,omitempty"`
	Method Method `json:"method"`
	// Aligned says how the places of both logs were matched.
	Aligned string `json:"aligned,omitempty"`
	Source  Range  `json:"source_offsets"` // that were compared
	Target  Range  `json:"target_offsets"`

	Equal      int64        `json:"equal"` // records, or keys
	Untimed    int64        `json:"timestamps_not_compared"`
	Missing    int64        `json:"missing"`
	Extra      int64        `json:"extra"`
	Duplicates int64        `json:"duplicates"`
	Foreign    int64        `json:"foreign"`
	Changed    int64        `json:"changed"`
	Reordered  int64        `json:"reordered"`
	Listed     []Difference `json:"differences"`
	// Ledger are the loss ledger's entries about the partition, also of records
	// that neither side holds any more.
	Ledger []string `json:"ledger,omitempty"`
	// Digest is the rolling digest of the equal records; two runs over the same
	// records have the same one.
	Digest string `json:"digest,omitempty"`
	Passes int    `json:"passes,omitempty"` // over a compacted log
}

func (p *Partition) take(t *Tally) {
	p.Equal, p.Untimed, p.Missing, p.Extra = t.Equal, t.Untimed, t.Missing, t.Extra
	p.Duplicates, p.Foreign, p.Changed, p.Reordered = t.Duplicates, t.Foreign, t.Changed, t.Reordered
	p.Listed = t.Listed
}

func (p *Partition) differences() int64 {
	return p.Missing + p.Extra + p.Duplicates + p.Foreign + p.Changed + p.Reordered
}

// Report is what a run found in one flow.
type Report struct {
	Flow    string  `json:"flow"`
	Verdict Verdict `json:"verdict"`
	Mode    string  `json:"mode"`
	// Fields says what of a record was compared.
	Fields     string      `json:"fields"`
	Isolation  string      `json:"source_isolation"`
	Estimate   Estimate    `json:"estimate"`
	BytesRead  int64       `json:"bytes_read"`
	Seconds    float64     `json:"seconds"`
	Partitions []Partition `json:"partitions"`
	// Notes are what concerns no single partition.
	Notes []string `json:"notes,omitempty"`
}

// comparedFields is what is compared of a record.
const comparedFields = "key, value, headers in their order, timestamp (not where the target's broker set its own, nor where the source record has none)"

// Estimate is what a run is going to read.
type Estimate struct {
	Topics     int   `json:"topics"`
	Partitions int   `json:"partitions"`
	Offsets    int64 `json:"offsets"` // on both sides; at most so many records
	Bytes      int64 `json:"bytes"`   // on disk, on both sides
	// Unsized counts the logs whose size could not be learnt; they are not in Bytes.
	Unsized int `json:"logs_of_unknown_size"`
}

// Text is the report for people: every difference, and one line for each topic.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow %s: compared %s\n", r.Flow, r.Fields)
	for i := 0; i < len(r.Partitions); {
		j := i
		for j < len(r.Partitions) && r.Partitions[j].Topic == r.Partitions[i].Topic {
			j++
		}
		writeTopic(&b, r.Partitions[i:j])
		i = j
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	equal, unit := r.Equal()
	fmt.Fprintf(&b, "flow %s: %s (%d %s equal in %d partitions, %d bytes read in %.1f s)\n",
		r.Flow, r.Verdict, equal, unit, len(r.Partitions), r.BytesRead, r.Seconds)
	return b.String()
}

// Equal counts what has its equal, over all partitions.
func (r *Report) Equal() (n int64, unit string) {
	unit = "records"
	for i := range r.Partitions {
		n += r.Partitions[i].Equal
		if r.Partitions[i].Method == LastValues {
			unit = "records and keys"
		}
	}
	return n, unit
}

func writeTopic(b *strings.Builder, parts []Partition) {
	verdict, equal := Equal, int64(0)
	for i := range parts {
		verdict = Worse(verdict, parts[i].Verdict)
		equal += parts[i].Equal
	}
	fmt.Fprintf(b, "  %s -> %s: %s, %d equal in %d partitions, %s\n", parts[0].Topic, parts[0].Copy, verdict, equal, len(parts), parts[0].Method)
	for i := range parts {
		p := &parts[i]
		if p.Verdict == Equal && p.Reason == "" && len(p.Ledger) == 0 {
			continue
		}
		fmt.Fprintf(b, "    partition %d: %s", p.Partition, p.Verdict)
		if p.Reason != "" {
			fmt.Fprintf(b, ": %s", p.Reason)
		}
		b.WriteByte('\n')
		for _, entry := range p.Ledger {
			fmt.Fprintf(b, "      in the loss ledger: %s\n", entry)
		}
		writeDifferences(b, p)
	}
}

func writeDifferences(b *strings.Builder, p *Partition) {
	source := "source " + kafka.TopicPartition{Topic: p.Topic, Partition: p.Partition}.String()
	target := "target " + kafka.TopicPartition{Topic: p.Copy, Partition: p.Partition}.String()
	var told int64
	for i := range p.Listed {
		d := &p.Listed[i]
		fmt.Fprintf(b, "      %s\n", d.text(source, target))
		told += max(d.SourceRecords, d.TargetRecords)
		writeShown(b, "source", d.Source)
		writeShown(b, "target", d.Target)
	}
	if more := p.differences() - told; more > 0 {
		fmt.Fprintf(b, "      and %s more\n", records(more))
	}
}

func writeShown(b *strings.Builder, side string, s *Shown) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "        %s record at offset %d: time %d, key %s, value %s", side, s.Offset, s.Timestamp, s.Key, s.Value)
	for _, h := range s.Headers {
		fmt.Fprintf(b, ", header %q = %s", h.Key, h.Value)
	}
	b.WriteByte('\n')
}

// String is the field in quotes, or null.
func (t Text) String() string {
	switch {
	case t.Null:
		return "null"
	case t.Base64 != "":
		return fmt.Sprintf("base64 %s (%d bytes)", t.Base64, t.Bytes)
	case len(t.Text) < t.Bytes:
		return fmt.Sprintf("%q... (%d bytes)", t.Text, t.Bytes)
	}
	return fmt.Sprintf("%q", t.Text)
}
