// Package recordbatch reads, judges and re-stamps Kafka record batches as bytes,
// so that a batch can go from one cluster to another without being decompressed,
// and rewrites those few that cannot.
//
// It is not a client: no I/O, no clock, no goroutines. Its only shared state are
// tables and the sync.Pools of codecs and scratch memory, which carry nothing
// from one call to the next.
//
// The walk, for one partition of a fetch answer:
//
//	filter.Reset(aborted)
//	s := NewScanner(records)
//	for s.Next(&b) {
//		if filter.Aborted(&b) { skip }             // every batch, also control batches
//		switch Judge(&b, from, target) {
//		case Drop:            skip
//		case Forward:         b.Bytes              // as it is
//		case Recode, Decode:  Rewrite(&b, …)       // new bytes and an offset map
//		}
//		from = b.NextOffset()
//	}
//	s.Err()                                        // garbage; a cut-off end is none
//	Merge small ones; Seal each with its sequence; produce.
//
// # Layout of a batch (magic 2)
//
//	byte   field            type   written anew by Seal
//	0      base offset      int64  0
//	8      length           int32            bytes after this field
//	12     leader epoch     int32  -1
//	16     magic            int8             always 2; here in magic 0 and 1, too
//	17     checksum         uint32 moved     CRC-32C of everything from byte 21 on
//	21     attributes       int16  bits      0-2 codec, 3 LogAppendTime, 4 transactional,
//	                                         5 control, 6 delete horizon
//	23     last offset delta int32
//	27     first timestamp  int64            base of the records' deltas; the delete
//	                                         horizon lies here when bit 6 is set
//	35     max timestamp    int64
//	43     producer id      int64  ours
//	51     producer epoch   int16  ours
//	53     base sequence    int32  ours
//	57     count            int32
//	61     records, compressed as one block
//
// A record, all integers zigzag varints: length, attributes (one byte), timestamp
// delta, offset delta, key length, key, value length, value, number of headers,
// and per header key length, key, value length, value. Length -1 is null.
//
// An entry of magic 0 or 1, big-endian: offset (8 bytes), size (4), CRC-32 (4) of
// the rest, magic (1), attributes (1), timestamp (8, only magic 1), key length (4),
// key, value length (4), value. The value of a compressed entry is a message set;
// the entry then has the offset of its last record, and the inner offsets are
// absolute in magic 0 and relative in magic 1.
//
// # What the target's broker demands, and what becomes of a batch
//
//	a batch that …                                 becomes
//	has magic 0 or 1                               decoded and built anew (Decode, Rewrite)
//	lies wholly before the wanted offset           dropped
//	is a control batch, or has no records          dropped
//	belongs to an aborted transaction              dropped by the caller (AbortFilter)
//	has holes (count is not last delta + 1)        renumbered (Recode, Rewrite)
//	starts before the wanted offset                cut there (Recode, Rewrite)
//	has LogAppendTime, the target CreateTime       given that time (Recode, Rewrite)
//	is larger than max.message.bytes               split (Recode, Rewrite)
//	is anything else                               forwarded
//
// The transactional bit, the delete horizon bit, the LogAppendTime bit and the
// producer fields never travel: Seal replaces them.
//
// Invariants:
//   - A [Batch] is a view; it never reaches outside the bytes given to the [Scanner].
//   - No input makes a function panic, except a batch given to [Seal] that no
//     function of this package has seen.
//   - A checksum is computed anew only over bytes whose old checksum held. [Seal]
//     moves it without reading the records, so that damage stays visible.
package recordbatch
