package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// mirrorMakerPatience is how long MirrorMaker waits for its target at the start.
const mirrorMakerPatience = time.Minute

// mirrorMakerMain is the program under MirrorMaker's name.
func mirrorMakerMain(ctx context.Context, args []string, io Stdio) int {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(io.Err, format, args...) // nobody is left to tell
	}
	if len(args) == 0 {
		say("%s", mirrorMakerUsage)
		return mmExitWrapper
	}
	m, err := parseMirrorMakerArgs(args)
	if m.Help {
		_, _ = fmt.Fprint(io.Out, mirrorMakerHelp) // as above
		return mmExitUsage
	}
	if err == nil {
		err = readable(m.File)
	}
	if err != nil {
		say("%sconnect-mirror-maker: error: %v\n", mirrorMakerUsage, err)
		return mmExitUsage
	}
	if m.Background {
		say("connect-mirror-maker: -daemon is ignored: the process stays in the foreground, put it under a service manager\n")
	}
	return mirrorMakerRun(ctx, m, io, say)
}

func mirrorMakerRun(ctx context.Context, m mirrorMakerArgs, io Stdio, say func(string, ...any)) int {
	ctx, received, stop := untilSignal(ctx)
	defer stop()
	g := &globals{Stdio: io}
	s, err := g.newSession("info")
	if err != nil {
		say("connect-mirror-maker: %v\n", err)
		return mmExitStart
	}
	dep, err := load(m.File, false)
	if err != nil {
		say("connect-mirror-maker: %v\n", err)
		return mmExitStartup
	}
	if dep.Err() != nil {
		var b strings.Builder
		writeProblems(&b, dep.Problems)
		say("%sconnect-mirror-maker: %s: %s\n", b.String(), m.File, countProblems(dep.Problems))
		return mmExitStartup
	}
	if strange := strangers(dep, m.Clusters); len(strange) > 0 { // as MirrorMaker, which does not look
		say("connect-mirror-maker: --clusters: %s\n", strangersText(dep, strange))
	}
	end := s.serve(ctx, received, dep, serveOptions{
		Targets: aliases(m.Clusters), StopWithin: stopWithin,
		AwaitTargets: mirrorMakerPatience, FirstErrorStops: true,
	})
	if end.err != nil && end.signal == nil {
		say("connect-mirror-maker: %v\n", end.err)
	}
	return mirrorMakerCode(end)
}

// mirrorMakerCode is what MirrorMaker's process would have ended with. A signal
// that it obeys shows in the code even after a clean stop.
func mirrorMakerCode(end stopped) int {
	switch {
	case end.signal == syscall.SIGTERM:
		return mmExitSIGTERM
	case end.signal == syscall.SIGINT:
		return mmExitSIGINT
	case errors.Is(end.err, errStartup):
		return mmExitStartup
	case end.err != nil:
		return mmExitFatal
	}
	return exitOK
}

// readable checks the file as MirrorMaker's argument parser does.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("argument mm2.properties: %w", err)
	}
	return f.Close()
}
