package cli

import (
	"errors"
	"fmt"
	"io/fs"
)

// The exit codes of heliograph's verbs. They are part of the interface.
const (
	exitOK       = 0
	exitFile     = 1 // the file is bad, or nothing in it can be run
	exitUsage    = 2 // the command line is bad
	exitClusters = 3 // something on the clusters stands in the way (check --connect, plan)
	exitFailed   = 4 // a flow ended with an error, a stop settled not everything, or the output cannot be written
)

// The exit codes under MirrorMaker's name.
const (
	mmExitWrapper = 1   // no argument at all: its shell script's code
	mmExitFatal   = 1   // a flow broke for good while running
	mmExitStartup = 2   // the file, the flows, or a target that cannot be reached
	mmExitStart   = 3   // starting the flows failed
	mmExitUsage   = 255 // the command line, or -h
	mmExitSIGINT  = 130
	mmExitSIGTERM = 143
)

// exitHelp is the table that the long help of every verb ends with.
const exitHelp = `Exit codes:
  0  done; for run: stopped by SIGTERM or SIGINT and everything was settled
  1  the file is bad (every problem is listed), or nothing in it can be run
  2  the command line is bad
  3  something on the clusters stands in the way (check --connect, plan)
  4  a flow ended with an error, or a stop settled not everything (a cluster was
     away, or the bound was over): the next start finds the place by scanning; or
     the output could not be written
`

// exitError is an error with the code the process ends with. Its cause may be
// nil where everything was said already.
type exitError struct {
	code  int
	cause error
}

// Error is the cause's text.
func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

// Unwrap is the cause.
func (e *exitError) Unwrap() error { return e.cause }

// exit ends a verb with a code and an error to print.
func exit(code int, err error) error { return &exitError{code: code, cause: err} }

// exitSaid ends a verb with a code when its output told why.
func exitSaid(code int) error { return &exitError{code: code} }

// codeOf is the exit code of a verb's error, and what is left to print of it.
func codeOf(err error) (code int, say error) {
	if err == nil {
		return exitOK, nil
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		if e.cause == nil {
			return e.code, nil
		}
		return e.code, err
	}
	// cobra's own errors are about flags and arguments.
	if _, ok := errors.AsType[*fs.PathError](err); ok { // the output cannot be written
		return exitFailed, err
	}
	return exitUsage, err
}
