package daemon

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// lookAtFilesEvery is how often the content of files that are followed is compared with what runs.
// Names are followed anew each time: a mounted config map changes by swapping a link.
const lookAtFilesEvery = 2 * time.Second

// Follow calls reload, with the reason, on SIGHUP and when the content of the files has changed
// and stands still, until ctx ends. seen is the [Digest] of what runs already; names are asked for
// anew each time, since what was read may name other files.
func Follow(ctx context.Context, seen string, names func() []string, reload func(reason string)) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	look := time.NewTicker(lookAtFilesEvery)
	defer look.Stop()
	last := seen
	for {
		reason := "SIGHUP"
		select {
		case <-ctx.Done():
			return
		case <-hup:
		case <-look.C:
			now := Digest(names())
			stands := now == last
			last = now
			if now == seen || !stands { // nothing is new, or somebody is in the middle of writing it
				continue
			}
			reason = "its content, or a file it names, has changed"
		}
		before := names()
		seen = Digest(before) // not behind it: what changes while it is read is found next time
		reload(reason)
		if after := names(); !slices.Equal(before, after) {
			seen = Digest(after)
		}
		last = seen
	}
}
