package cli

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

// reloader keeps a daemon in step with its file. A file that is bad changes nothing.
type reloader struct {
	file    string
	strict  bool
	canary  bool
	targets []mirror.ClusterAlias
	log     *slog.Logger

	process config.Process
	seen    string   // digest of what the process was started with
	read    []string // the files that decide what runs
}

// newReloader follows the file that a deployment was just loaded from, and the files that its
// references were read from; before is the file's digest from before that.
func newReloader(o runOptions, dep *config.Deployment, read []string, before string, log *slog.Logger) *reloader {
	r := &reloader{file: o.File, strict: o.Strict, canary: o.Canary, targets: aliases(o.Clusters), log: log, process: dep.Process}
	r.read = watched(o.File, dep, read)
	if daemon.Digest([]string{o.File}) == before {
		r.seen = daemon.Digest(r.read)
	}
	return r
}

// run reloads on SIGHUP, and when what the file means has changed and stands still.
func (r *reloader) run(ctx context.Context, d *daemon.Daemon) {
	daemon.Follow(ctx, r.seen, func() []string { return r.read }, func(reason string) {
		r.log.Info("reading the file again", telemetry.KeyFile, r.file, telemetry.KeyReason, reason)
		r.reload(d)
	})
}

// reload applies the file as it is now, or says why it cannot.
func (r *reloader) reload(d *daemon.Daemon) {
	dep, read, err := loadNoting(r.file, r.strict)
	if err != nil {
		r.log.Error("the file is not taken over, everything runs on as before", telemetry.KeyError, err)
		return
	}
	if dep.Err() != nil {
		for _, p := range dep.Problems {
			if p.Severity == config.Error {
				r.log.Error("error in the file", telemetry.KeyFile, place(p), "key", p.Key, telemetry.KeyReason, p.Message, telemetry.KeyHint, p.Hint)
			}
		}
		r.log.Error("the file is not taken over, everything runs on as before", telemetry.KeyReason, countProblems(dep.Problems))
		return
	}
	r.read = watched(r.file, dep, read)
	if r.canary {
		dep = daemon.Canary(dep)
	}
	wanted := daemon.WantedOf(dep, r.targets...)
	n := logDiff(r.log, d, wanted)
	r.applyProcess(d, dep.Process)
	if err := d.Apply(wanted); err != nil {
		r.log.Error("part of the file is not taken over; what it concerns runs on as before", telemetry.KeyError, err)
		return
	}
	r.log.Info("the file is taken over", telemetry.KeyFile, r.file, "changed_flows", n)
}

// applyProcess takes over what of the process can change while it runs.
func (r *reloader) applyProcess(d *daemon.Daemon, p config.Process) {
	if p.BytesPerSecond != r.process.BytesPerSecond {
		d.SetRate(p.BytesPerSecond)
		r.log.Info("cap of the process changes", "effect", string(daemon.EffectLive), "bytes_per_second", p.BytesPerSecond)
	}
	if p.MemoryBytes != r.process.MemoryBytes || p.MetricsAddress != r.process.MetricsAddress {
		r.log.Warn("a change needs a restart of the process", "key", "heliograph.memory.bytes, heliograph.metrics.address")
	}
	r.process.BytesPerSecond = p.BytesPerSecond
}

// logDiff tells what will change, a line a setting, and counts the flows that do.
func logDiff(log *slog.Logger, d *daemon.Daemon, wanted []daemon.Wanted) int {
	old := map[mirror.FlowID]*daemon.Wanted{}
	for _, w := range d.Now() {
		old[w.Flow.ID] = &w
	}
	n := 0
	tell := func(id mirror.FlowID, was, is *daemon.Wanted) {
		e := d.Effect(was, is)
		if e.Kind == daemon.EffectNone {
			return
		}
		n++
		flowLog := log.With(telemetry.KeyFlow, id.String())
		flowLog.Info("flow will change", "effect", string(e.Kind), telemetry.KeyReason, e.Why)
		if was == nil || is == nil {
			return
		}
		for _, c := range daemon.SettingChanges(was.Flow, is.Flow) {
			flowLog.Info("setting changes", "key", c.Key, "old", c.Old, "new", c.New)
		}
	}
	for i := range wanted {
		id := wanted[i].Flow.ID
		tell(id, old[id], &wanted[i])
		delete(old, id)
	}
	for _, id := range slices.SortedFunc(maps.Keys(old), func(a, b mirror.FlowID) int { return strings.Compare(a.String(), b.String()) }) {
		tell(id, old[id], nil)
	}
	return n
}

// watched are the files whose content decides what runs: the file, those its references were
// read from, and those of logins and certificates.
func watched(file string, dep *config.Deployment, read []string) []string {
	names := slices.Concat([]string{file}, read, daemon.Files(dep))
	slices.Sort(names)
	return slices.Compact(names)
}
