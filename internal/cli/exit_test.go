package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestOutputThatCannotBeWrittenIsNoBadCommandLine(t *testing.T) {
	full := fmt.Errorf("report: %w", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC})
	for _, tt := range []struct {
		err  error
		want int
	}{{full, exitFailed}, {errors.New("unknown flag: --x"), exitUsage}, {exit(exitFile, full), exitFile}, {nil, exitOK}} {
		if code, _ := codeOf(tt.err); code != tt.want {
			t.Errorf("%v: code %d, want %d", tt.err, code, tt.want)
		}
	}
}
