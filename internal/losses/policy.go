package losses

// Poison is what happens to records that the target refuses for good, or that
// cannot be decoded.
type Poison string

// The policies for poison.
const (
	// PoisonStop parks the partition before the record. It is the default.
	PoisonStop Poison = "stop"
	// PoisonSkip writes the loss down and goes on behind the record.
	PoisonSkip Poison = "skip-and-record"
	// PoisonDeadLetter keeps the record in the dead-letter topic first.
	PoisonDeadLetter Poison = "dead-letter"
)

// Policy is what happens to a topic's partitions where records cannot be copied,
// or the copy is no longer ours alone. The zero policy stops for poison, goes on
// behind what retention took, and goes on behind what others wrote.
type Policy struct {
	Poison Poison
	// ParkOvertaken parks a partition whose records the source's retention has
	// removed before they were read; otherwise copying goes on behind them.
	ParkOvertaken bool
	// ParkForeign parks a partition that somebody else writes to; otherwise that
	// is only noted. It is set under identity naming, where these may be the
	// promoted target's own producers.
	ParkForeign bool
	// RestartSource copies a source topic that was deleted and made again from its
	// start, behind what the copy holds; RestartTarget copies everything again into
	// a copy that was. Otherwise their partitions park.
	RestartSource, RestartTarget bool
}
