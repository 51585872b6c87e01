// Package verify proves that the copy of a topic holds what its source holds,
// record for record, over the range that both still have, and names what it
// finds otherwise with its place on both sides.
//
// It trusts no offset: transactions, compaction and other writers shift those.
// Two logs are walked in step, batch by batch, and each record stands for itself
// as a digest of its key, value and headers beside its timestamp. As long as the
// records agree nothing of them is kept but one rolling digest.
//
// The walk, for one partition:
//
//	ends      fix where the source ends now; only that much is demanded
//	align     where both logs begin with their first record ever, there; otherwise
//	          search the first records of the log that begins later in the other
//	step      equal records pass; where two differ, look ahead on both sides for
//	          the nearest place where the logs meet again, and name what lies before
//	end       wait for the target (live), read on at the source for target records
//	          that are newer than the fixed end
//
// A topic that either side compacts has no sequence to compare: there the last
// value of each key is compared, in as many passes as its keys need.
//
// Words: an item is a record as the comparison sees it. The needles are the first
// items of the log that begins later, the haystack is the other log. A start is a
// pair of places, one on each side, that hold the same record. An anchor is an
// offset sync: a pair of offsets that MirrorMaker or heliograph wrote down.
//
// What is known when it says:
//
//	equal      every record of both logs from the start on to the fixed end of the
//	           source has its equal on the other side, in the same order
//	different  under no start that could be found is that so, or under one that is
//	           beyond doubt: records that tell themselves apart, nearly all equal
//	unknown    no start was found, or a log could not be read: never taken for equal
//
// Invariants:
//   - Nothing is written to any cluster.
//   - Memory is bounded whatever the size of a topic: see the constants lookAhead,
//     maxKeys and maxListed.
//   - Contents of records leave this package only where the caller asks for them.
package verify
