//go:build chaos

// Command cmd runs a seed's chaos, prints what it sees and appends the table to
// docs/reliability.md. Its exit code is 3 when records were lost or doubled, or
// anything else was found.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heliograph/test/chaos"
)

func main() {
	o := chaos.Options{Out: os.Stdout}
	var minutes float64
	var report, only string
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "what the schedule is drawn from")
	flag.Float64Var(&minutes, "minutes", 3, "scheduled length; a slow machine takes longer")
	flag.IntVar(&o.PerSecond, "rate", 10_000, "records a second to write to the source")
	flag.StringVar(&o.Binary, "binary", "bin/heliograph", "the program to break")
	flag.BoolVar(&o.Java, "java", false, "run Java MirrorMaker 2 under those faults of the schedule that it can meet")
	flag.StringVar(&report, "report", "docs/reliability.md", "file to append the table to; empty for none")
	flag.StringVar(&only, "only", "", "words of the kinds of faults to make, for example \"zombie,second\"; empty for all")
	flag.Parse()
	if only != "" {
		o.Only = strings.Split(only, ",")
	}
	o.Length = time.Duration(minutes * float64(time.Minute))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, o, report)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, o chaos.Options, report string) int {
	const failed, found = 1, 3
	complain := func(err error) int {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return failed
	}
	var err error
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return complain(err)
	}
	if _, err := os.Stat(o.Binary); err != nil && !o.Java {
		return complain(fmt.Errorf("%w (run make build)", err))
	}
	result, err := chaos.Run(ctx, o)
	if err != nil {
		return complain(fmt.Errorf("seed %d: %w", o.Seed, err))
	}
	fmt.Printf("\n%s\nseed %d: %d records, lost %d, doubled %d, %d entries in the ledger; %.0f records a second\n",
		result.Table(), o.Seed, result.Records(), result.Lost(), result.Doubled(), len(result.Ledger), result.Reached)
	for _, note := range result.Notes {
		fmt.Println("note:", note)
	}
	if report != "" {
		if err := result.Append(ctx, report); err != nil {
			return complain(err)
		}
	}
	if err := result.Failure(); err != nil {
		fmt.Printf("FAILED: %v\n", err)
		return found
	}
	return 0
}
