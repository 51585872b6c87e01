// Gotest runs Go tests and ends with one line that counts them, however many go
// commands it took:
//
//	gotest [-counts FILE] run GO-TEST-ARGUMENTS…   go test, failures in full
//	gotest [-counts FILE] fuzz TIME PACKAGES…      every fuzz target for a time
//	gotest -counts FILE sum                        the total of all runs since FILE was new
//
// The exit status is 1 if any test, or the building of any, failed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// tally counts tests by their end. Subtests count as tests of their own.
type tally struct{ Passed, Failed, Skipped int }

// String is the closing line that test reports are read for.
func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.Passed, t.Failed, t.Skipped)
}

func (t tally) plus(o tally) tally {
	return tally{t.Passed + o.Passed, t.Failed + o.Failed, t.Skipped + o.Skipped}
}

func main() {
	counts := flag.String("counts", "", "file that collects the counts of several runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	total, err := run(ctx, *counts, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		total.Failed = max(total.Failed, 1)
	}
	fmt.Println(total)
	if total.Failed > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, counts string, args []string) (tally, error) {
	if len(args) == 0 {
		return tally{}, errors.New("want run, fuzz or sum")
	}
	if args[0] == "sum" {
		return sum(counts)
	}
	var total tally
	var err error
	switch {
	case args[0] == "run":
		total, err = test(ctx, args[1:])
	case args[0] == "fuzz" && len(args) > 2:
		total, err = fuzz(ctx, args[1], args[2:])
	default:
		return total, fmt.Errorf("unknown command %q", strings.Join(args, " "))
	}
	if err != nil && total.Failed == 0 {
		// A package that did not build has no test to count.
		total.Failed = 1
	}
	return total, errors.Join(err, record(counts, total))
}

// record appends a run's counts to the file.
func record(path string, t tally) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(t), f.Close())
}

func sum(path string) (tally, error) {
	var total tally
	f, err := os.Open(path)
	if err != nil {
		return total, err
	}
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var t tally
		switch err := dec.Decode(&t); {
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, fmt.Errorf("%s: %w", path, err)
		}
		total = total.plus(t)
	}
}

// event is one line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// test runs go test once, prints a line per package and the whole output of what failed.
func test(ctx context.Context, args []string) (tally, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	total := follow(out)
	if err := cmd.Wait(); err != nil {
		return total, fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	return total, nil
}

func follow(out io.Reader) tally {
	var total tally
	output := map[string]*strings.Builder{} // by package and test
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		if e.Action == "build-output" {
			fmt.Print(e.Output)
			continue
		}
		key := e.Package + "." + e.Test
		switch e.Action {
		case "output":
			if output[key] == nil {
				output[key] = &strings.Builder{}
			}
			output[key].WriteString(e.Output)
		case "pass", "fail", "skip":
			report(e, output[key], &total)
			delete(output, key)
		}
	}
	return total
}

func report(e event, output *strings.Builder, total *tally) {
	if e.Test == "" {
		if e.Action != "skip" {
			fmt.Printf("%-4s %s (%.1fs)\n", e.Action, e.Package, e.Elapsed)
		}
		if e.Action == "fail" && output != nil {
			fmt.Print(output)
		}
		return
	}
	switch e.Action {
	case "pass":
		total.Passed++
	case "skip":
		total.Skipped++
		fmt.Printf("SKIPPED %s %s\n", e.Package, e.Test)
	case "fail":
		total.Failed++
	}
	if e.Action != "pass" && output != nil {
		fmt.Print(output)
	}
}

// target is one fuzz function.
type target struct{ pkg, name string }

// fuzz runs every fuzz target of the packages, one after the other: each uses all cores.
func fuzz(ctx context.Context, each string, packages []string) (tally, error) {
	var total tally
	targets, err := targets(ctx, packages)
	if err != nil {
		return total, err
	}
	for _, t := range targets {
		fmt.Printf("fuzz %s %s for %s\n", t.pkg, t.name, each)
		args := []string{"test", "-run", "^$", "-fuzz", "^" + t.name + "$", "-fuzztime", each, t.pkg}
		out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
		if err != nil && !onlyTimeUp(string(out)) {
			total.Failed++
			fmt.Printf("fail %s %s: %v\n%s", t.pkg, t.name, err, out)
			continue
		}
		total.Passed++
	}
	return total, ctx.Err()
}

// onlyTimeUp recognises how go test ends when the time is up in the middle of
// an input: it reports a failure, but no input that failed.
func onlyTimeUp(out string) bool {
	return strings.Contains(out, "    context deadline exceeded\n") &&
		!strings.Contains(out, "Failing input") && !strings.Contains(out, "_test.go:")
}

// targets lists the fuzz functions without running anything.
func targets(ctx context.Context, packages []string) ([]target, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-list", "^Fuzz"}, packages...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list fuzz targets: %w", err)
	}
	var found []target
	for line := range strings.Lines(string(out)) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil || e.Action != "output" {
			continue
		}
		if name := strings.TrimSpace(e.Output); strings.HasPrefix(name, "Fuzz") {
			found = append(found, target{e.Package, name})
		}
	}
	return found, nil
}
