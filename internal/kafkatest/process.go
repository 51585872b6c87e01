package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errEnded is the end of a process that reported no failure.
var errEnded = errors.New("exit status 0")

// stopPatience is how long Stop waits for a process that was asked to end.
const stopPatience = 30 * time.Second

// ProcessSpec says what to run. Stdin may be nil; both outputs go to one log file.
type ProcessSpec struct {
	Name  string // of the log file, for people: "A-1", "mirrormaker"
	Dir   string // where the log file lies and the process works
	Path  string
	Args  []string
	Env   []string // added to the test's environment
	Stdin io.Reader
}

// A Process is a child of the test binary. It is safe for concurrent use.
//
// Invariant: it dies with the test binary, even when that is killed.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process is reaped

	mu struct {
		sync.Mutex
		err  error // how it ended; set before done is closed
		peak int64 // largest resident size seen
	}
}

// StartProcess runs a program and returns at once.
func StartProcess(spec ProcessSpec) (*Process, error) {
	p := &Process{name: spec.Name, logPath: filepath.Join(spec.Dir, spec.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// The child holds its own descriptor of the log from here on.
	defer log.Close()
	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = append(os.Environ(), spec.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = spec.Stdin, log, log
	// A group of its own keeps the terminal's ^C from reaching brokers before
	// the test could end them in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := spawn(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	go p.reap()
	return p, nil
}

// spawn starts cmd from one thread that never ends: the kernel sends the
// death signal when the thread that forked ends, not when the process does.
func spawn(cmd *exec.Cmd) error {
	spawner.once.Do(func() {
		spawner.requests = make(chan spawnRequest)
		go func() {
			runtime.LockOSThread()
			for r := range spawner.requests {
				r.result <- r.cmd.Start()
			}
		}()
	})
	result := make(chan error, 1)
	spawner.requests <- spawnRequest{cmd, result}
	return <-result
}

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan error
}

var spawner struct {
	once     sync.Once
	requests chan spawnRequest
}

func (p *Process) reap() {
	err := p.cmd.Wait()
	if err == nil {
		err = errEnded
	}
	p.mu.Lock()
	p.mu.err = err
	p.mu.Unlock()
	close(p.done)
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode waits for the end and returns the code; a signal's death is 128 + signal, as a shell says it.
func (p *Process) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for %s: %w", p.name, context.Cause(ctx))
	}
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}

// Signal sends a signal. An ended process is not an error.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	p.PeakMemory()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill ends the process as a power cut would and waits for its end.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the process to end and waits; one that will not end is killed, which is an error.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process cannot act on the request.
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-p.done:
		return nil
	case <-patience.C:
		return errors.Join(fmt.Errorf("stop %s: still running after %v", p.name, stopPatience), p.Kill())
	}
}

// Pause stops the process from running without ending it: its connections stay
// open and silent. It returns once every thread stands still.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for patience := time.Now().Add(stopPatience); p.Running() && !allStopped(p.PID()); time.Sleep(time.Millisecond) {
		if time.Now().After(patience) {
			return fmt.Errorf("pause %s: still running after %v", p.name, stopPatience)
		}
	}
	return nil
}

// allStopped says whether every thread of a process obeys a stop signal.
func allStopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, path := range threads {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		// Field 2 is the thread's name in parentheses and may hold spaces.
		if _, rest, _ := strings.Cut(string(raw), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return len(threads) > 0
}

// Resume lets a paused process run again.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// CPU is the processor time used, user and system. It is complete once the process has ended.
func (p *Process) CPU() time.Duration {
	if !p.Running() {
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0
	}
	// Field 2 is the program's name in parentheses and may hold spaces.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const ticksPerSecond = 100
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// PeakMemory is the largest resident size so far in bytes. Of an ended process it
// is what was seen at the last signal: the kernel's own figure for a dead child
// includes what its parent held when it forked.
func (p *Process) PeakMemory() int64 {
	now := residentPeak(p.PID())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.peak = max(p.mu.peak, now)
	return p.mu.peak
}

// residentPeak reads the high-water mark of a running process; 0 once it is gone.
func residentPeak(pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib * 1024
		}
	}
	return 0
}

// Log is all that the process has printed so far.
func (p *Process) Log() string {
	raw, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Tail is the end of the log, under a heading, for a failed test's output.
func (p *Process) Tail(lines int) string {
	return fmt.Sprintf("--- %s, last %d lines of %s\n%s", p.name, lines, p.logPath, lastLines(p.Log(), lines))
}

// failure describes a process that ended when it should not have.
func (p *Process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s ended: %w\n%s", p.name, p.mu.err, p.Tail(30))
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
