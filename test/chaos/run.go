package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

const (
	// recoveryPatience bounds the wait for recovery from one fault.
	recoveryPatience = 2 * time.Minute
	// lastPatience bounds the wait for the last record at the end.
	lastPatience = 4 * time.Minute
	// ledgerTopic is where the program writes down what it could not copy.
	ledgerTopic = "mm2-losses.internal"
)

// Options say what to run.
type Options struct {
	Seed      uint64
	Length    time.Duration
	PerSecond int      // of the load
	Binary    string   // the built program
	Java      bool     // run Java MirrorMaker 2 in its place
	Only      []string // words of the kinds of faults to make; none makes all
	Out       io.Writer
}

// Result is what a run showed.
type Result struct {
	Options
	Plan     Schedule
	Took     time.Duration
	Reached  float64 // records a second the load reached
	Sent     int64
	Rows     []row
	Starts   int
	Topics   []verdict
	Ledger   []string // entries of the loss ledger
	Findings []string // everything else that should not be
	Notes    []string // what the tail and the load have to say; not a failure by itself
	Kept     string   // the directory with the processes' logs; empty when it was removed
}

// row is what happened to one fault.
type row struct {
	Fault
	recovered time.Duration // from its end until all that was acknowledged before has arrived
	measured  bool          // recovery was waited for
	moved     int64
	doubled   int64
	gaps      int64
}

// verdict is the checker's word on one topic.
type verdict struct {
	topic  string
	report *kafkatest.Report
}

// Lost and Doubled are the checker's counts over all topics.
func (r *Result) Lost() int { return r.sum(func(v *kafkatest.Report) int { return v.Missing }) }

// Doubled is how many records the target has beyond those of the source.
func (r *Result) Doubled() int { return r.sum(func(v *kafkatest.Report) int { return v.Extra }) }

// Records is how many records the checker read on the target.
func (r *Result) Records() int {
	return r.sum(func(v *kafkatest.Report) int { return v.TargetRecords })
}

func (r *Result) sum(of func(*kafkatest.Report) int) int {
	n := 0
	for _, v := range r.Topics {
		n += of(v.report)
	}
	return n
}

// Failure says what is wrong with the result; nil means that nothing is.
func (r *Result) Failure() error {
	var errs []error
	for _, v := range r.Topics {
		if !v.report.Equal() {
			errs = append(errs, fmt.Errorf("%s: %s", v.topic, v.report))
		}
	}
	for _, e := range r.Ledger {
		errs = append(errs, fmt.Errorf("the loss ledger holds %s", e))
	}
	for _, f := range r.Findings {
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}

// Run runs a seed's schedule to its end and lets the checker judge. The error is
// about the run itself; what the program did wrong is in the result.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	plan := Draw(o.Seed, o.Length, o.Only...)
	if o.Java {
		plan = plan.forJava()
	}
	fmt.Fprint(o.Out, plan)
	result := &Result{Options: o, Plan: plan}
	r, err := newRig(ctx, o, plan)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, r.close())
		if err == nil && result.Failure() == nil {
			err = os.RemoveAll(r.dir)
			return
		}
		result.Kept = r.dir
		fmt.Fprintf(o.Out, "logs of the processes are kept in %s\n", r.dir)
	}()
	watched, err := startTail(ctx, r.target, r.remote())
	if err != nil {
		return nil, err
	}
	defer watched.stop()
	l, err := startLoad(ctx, r.source, plan, o.PerSecond)
	if err != nil {
		return nil, err
	}
	defer l.stop()
	if r.current, err = r.start(ctx); err != nil {
		return nil, err
	}
	run := &run{rig: r, load: l, tail: watched, result: result}
	began := time.Now()
	if err := run.faults(ctx); err != nil {
		return nil, err
	}
	result.Took = time.Since(began)
	return result, run.judge(ctx)
}

// run is a run under way.
type run struct {
	*rig
	load   *load
	tail   *tail
	result *Result
}

// say tells the person who waits.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.o.Out, "%s %s\n", time.Now().UTC().Format(clock), fmt.Sprintf(format, args...))
}

func (r *run) faults(ctx context.Context) error {
	first := map[kafka.TopicPartition]int64{}
	for _, t := range topics {
		for p := range t.partitions {
			first[kafka.TopicPartition{Topic: t.name, Partition: p}] = 1
		}
	}
	if _, err := r.recover(ctx, first); err != nil {
		return fmt.Errorf("the flow did not begin: %w\n%s", err, r.current.Tail(30))
	}
	for i, f := range r.plan.Faults {
		if err := r.fault(ctx, i, f); err != nil {
			return fmt.Errorf("fault %d, %s: %w", i+1, f.Kind, err)
		}
	}
	return nil
}

func (r *run) fault(ctx context.Context, i int, f Fault) error {
	if err := pause(ctx, f.After); err != nil {
		return err
	}
	r.tail.faulty(f.Kind)
	before, doubled, gaps := r.tail.total(), r.tail.oddities(f.Kind, true), r.tail.oddities(f.Kind, false)
	r.say("%d/%d %s", i+1, len(r.plan.Faults), f)
	if err := r.inject(ctx, f); err != nil {
		// A fault that could not be made to the end is said; the run goes on from a healed state.
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("fault %d, %s: %v", i+1, f.Kind, err))
		r.say("    %v", err)
		if err := r.heal(ctx); err != nil {
			r.find("after fault %d, %s: %v", i+1, f.Kind, err)
		}
	}
	out := row{Fault: f}
	if !f.Hurried {
		took, err := r.recover(ctx, r.load.counts())
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.find("no recovery from fault %d, %s: %v", i+1, f.Kind, err)
			r.dump(ctx)
		default:
			out.recovered, out.measured = took, true
			r.say("    recovered in %v", took.Round(10*time.Millisecond))
		}
	}
	out.moved = r.tail.total() - before
	out.doubled, out.gaps = r.tail.oddities(f.Kind, true)-doubled, r.tail.oddities(f.Kind, false)-gaps
	if out.doubled+out.gaps > 0 {
		r.say("    doubled %d, gaps %d", out.doubled, out.gaps)
	}
	r.result.Rows = append(r.result.Rows, out)
	return nil
}

// dump shows how the process sees itself when it does not recover.
func (r *run) dump(ctx context.Context) {
	health, err := r.current.get(ctx, "/healthz")
	r.say("    /healthz of process %d: %s (%v)\n%s", r.current.n, strings.TrimSpace(health), err, r.current.Tail(15))
}

func (r *run) find(format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	r.say("    FOUND: %s", finding)
	r.result.Findings = append(r.result.Findings, finding)
}

// recover waits until so many records have arrived and tells how long it took.
func (r *run) recover(ctx context.Context, want map[kafka.TopicPartition]int64) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryPatience, fmt.Errorf("not within %v", recoveryPatience))
	defer cancel()
	began := time.Now()
	err := r.tail.await(ctx, want)
	return time.Since(began), err
}

// judge heals everything, waits for lag zero, ends the process in order and lets
// the checker and the ledger speak.
func (r *run) judge(ctx context.Context) error {
	if err := r.heal(ctx); err != nil {
		r.find("%v", err)
	}
	r.say("the load ends, the last records are waited for")
	r.load.stop()
	r.result.Reached, r.result.Sent = r.load.reached(), r.load.total.Load()
	r.result.Notes = append(r.result.Notes, sample(r.load.troubles)...)
	waiting, cancel := context.WithTimeoutCause(ctx, lastPatience, fmt.Errorf("not within %v", lastPatience))
	defer cancel()
	if err := r.tail.await(waiting, r.load.counts()); err != nil {
		r.find("lag does not reach zero: %v", err)
		r.dump(ctx)
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.readLedger(ctx)
	r.end(ctx)
	for _, line := range sample(r.odd()) {
		r.find("%s", line)
	}
	r.tail.stop()
	r.result.Notes = append(r.result.Notes, r.tail.notes...)
	r.result.Starts = len(r.started)
	return nil
}

// end stops the process as a service manager does.
func (r *run) end(ctx context.Context) {
	if err := r.current.Stop(); err != nil {
		r.find("%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Java ends by a signal's code.
	if code, err := r.current.ExitCode(ctx); (err != nil || code != 0) && !r.o.Java {
		r.find("the last process ended with code %d (%v)", code, err)
	}
}

// compare asks the checker, again while a topic only lacks records that may be on their way.
func (r *run) compare(ctx context.Context) error {
	for _, t := range topics {
		until := time.Now().Add(30 * time.Second)
		for {
			report, err := kafkatest.Compare(ctx, kafkatest.Side{Cluster: r.source, Topic: t.name}, kafkatest.Side{Cluster: r.target, Topic: r.copyOf(t)})
			if err != nil {
				return err
			}
			if report.Equal() || report.Extra > 0 || time.Now().After(until) {
				r.say("%s: %s", t.name, report)
				r.result.Topics = append(r.result.Topics, verdict{t.name, report})
				break
			}
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLedger reads the loss ledger as any reader can: its records are JSON.
func (r *run) readLedger(ctx context.Context) {
	names, err := r.onTarget.ListTopics(ctx)
	if err != nil {
		r.find("the loss ledger cannot be looked for: %v", err)
		return
	}
	if r.o.Java || !slices.Contains(names.Names(), ledgerTopic) {
		return
	}
	entries, err := r.target.Read(ctx, ledgerTopic, kafka.ReadCommitted)
	if err != nil {
		r.find("the loss ledger cannot be read: %v", err)
		return
	}
	for _, records := range entries {
		for _, record := range records {
			if json.Valid(record.Value) {
				r.result.Ledger = append(r.result.Ledger, fmt.Sprintf("%s: %s", record.Key, record.Value))
			}
		}
	}
}

// sample keeps a report readable.
func sample(lines []string) []string {
	if len(lines) <= maxNotes {
		return lines
	}
	return append(slices.Clone(lines[:maxNotes]), fmt.Sprintf("and %d more", len(lines)-maxNotes))
}
