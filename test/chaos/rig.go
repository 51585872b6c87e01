package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	alias          = "A"
	flowName       = alias + "->B"
	groupID        = alias + "-mm2"
	positionsTopic = "mm2-offsets." + alias + ".internal"
	lanes          = 25
	pollEvery      = 200 * time.Millisecond
)

// rig is everything a run starts: clusters, file, processes.
type rig struct {
	o              Options
	plan           Schedule
	dir, file      string
	source, target *kafkatest.Cluster
	onSource       *kadm.Client
	onTarget       *kadm.Client
	current        *process // the one that should run
	started        []*process
	closers        []func() error
}

// process is one run of the program.
type process struct {
	*kafkatest.Process
	n int // which start it was
}

func newRig(ctx context.Context, o Options, plan Schedule) (_ *rig, err error) {
	r := &rig{o: o, plan: plan}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.dir, err = os.MkdirTemp("", "heliograph-chaos-"); err != nil {
		return nil, err
	}
	if r.source, err = r.launch(ctx, kafkatest.ClusterOptions{
		Name: "chaos-A", Version: kafkatest.ReleaseSource, Brokers: plan.SourceBrokers, Proxied: true,
		Properties: map[string]string{"broker.session.timeout.ms": "6000"},
	}); err != nil {
		return nil, err
	}
	if r.target, err = r.launchTarget(ctx); err != nil {
		return nil, err
	}
	if r.onSource, err = r.admin(r.source); err != nil {
		return nil, err
	}
	if r.onTarget, err = r.admin(r.target); err != nil {
		return nil, err
	}
	for _, t := range topics {
		// Records days back must not fall to retention.
		if err := r.source.MakeTopic(ctx, t.name, t.partitions, map[string]string{"retention.ms": "-1"}); err != nil {
			return nil, err
		}
	}
	r.file = filepath.Join(r.dir, "mm2.properties")
	return r, r.writeFile()
}

func (r *rig) writeFile() error {
	return os.WriteFile(r.file, []byte(strings.Join(r.lines(), "\n")+"\n"), 0o600)
}

// launch starts a cluster. A machine that is busy with other work may be too slow for
// the harness's patience at first.
func (r *rig) launch(ctx context.Context, opts kafkatest.ClusterOptions) (*kafkatest.Cluster, error) {
	const attempts = 3
	var err error
	for range attempts {
		var c *kafkatest.Cluster
		if c, err = kafkatest.Launch(ctx, opts); errors.Is(err, kafkatest.ErrNoMount) {
			break
		}
		if err == nil {
			r.closers = append(r.closers, c.Close)
			return c, nil
		}
	}
	return nil, err
}

func (r *rig) admin(c *kafkatest.Cluster) (*kadm.Client, error) {
	cl, err := c.Open(kgo.RequestTimeoutOverhead(3*time.Second), kgo.MetadataMaxAge(2*time.Second))
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() error { cl.Close(); return nil })
	return kadm.NewClient(cl), nil
}

// lines is the file of the flow; Java MirrorMaker 2 reads the same.
func (r *rig) lines() []string {
	out := []string{
		"clusters = " + alias + ", B",
		alias + ".bootstrap.servers = " + r.source.Bootstrap(),
		"B.bootstrap.servers = " + r.target.Bootstrap(),
		flowName + ".enabled = true",
		"B->" + alias + ".enabled = false",
		"B->" + alias + ".emit.heartbeats.enabled = false",
		"topics = chaos-.*",
		"refresh.topics.interval.seconds = 1",
		alias + ".consumer.isolation.level = read_committed",
		"replication.factor = 3",
		fmt.Sprintf("%s.offset-syncs.topic.replication.factor = %d", flowName, r.plan.SourceBrokers),
	}
	for _, key := range []string{
		"offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "offset.storage", "status.storage", "config.storage",
	} {
		out = append(out, key+".replication.factor = -1")
	}
	out = append(out, r.login()...)
	if r.plan.Identity {
		out = append(out, "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
	}
	if r.plan.ExactlyOnce {
		out = append(out, "B.exactly.once.source.support = enabled")
	}
	if r.o.Java {
		return append(out, "tasks.max = 4", "dedicated.mode.enable.internal.rest = false")
	}
	// Positions are deleted on purpose; without this the partitions wait for a person.
	return append(out, "heliograph.missing.position = scan")
}

// remote are the copies by their names.
func (r *rig) remote() map[string]topicSpec {
	out := map[string]topicSpec{}
	for _, t := range topics {
		out[r.copyOf(t)] = t
	}
	return out
}

func (r *rig) copyOf(t topicSpec) string {
	if r.plan.Identity {
		return t.name
	}
	return alias + "." + t.name
}

// start runs one more process of the flow and returns at once.
func (r *rig) start(ctx context.Context) (*process, error) {
	n := len(r.started) + 1
	name := fmt.Sprintf("process-%d", n)
	var p *kafkatest.Process
	var err error
	if r.o.Java {
		p, err = kafkatest.MirrorMaker(ctx, kafkatest.MirrorMakerOptions{Version: kafkatest.ReleaseTarget, File: r.file, Dir: r.dir, Name: name})
	} else {
		p, err = kafkatest.StartProcess(kafkatest.ProcessSpec{
			Name: name, Dir: r.dir, Path: r.o.Binary, Args: []string{"run", r.file, "--admin-address", "127.0.0.1:0"},
		})
	}
	if err != nil {
		return nil, err
	}
	started := &process{Process: p, n: n}
	r.started = append(r.started, started)
	return started, nil
}

// replace kills the current process and starts another.
func (r *rig) replace(ctx context.Context) error {
	if err := r.current.Kill(); err != nil {
		return err
	}
	p, err := r.start(ctx)
	if err != nil {
		return err
	}
	r.current = p
	return nil
}

// odd are the lines of all processes' logs that a person would want to see.
func (r *rig) odd() []string {
	var out []string
	for _, p := range r.started {
		for line := range strings.Lines(p.Log()) {
			for _, word := range []string{"partition parked", "panic", "will not be copied", "DATA RACE"} {
				if strings.Contains(line, word) {
					out = append(out, fmt.Sprintf("process %d: %s", p.n, strings.TrimSpace(line)))
					break
				}
			}
		}
	}
	return out
}

func (r *rig) close() error {
	var errs []error
	for _, p := range r.started {
		errs = append(errs, p.Kill())
	}
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// get asks the process's admin server.
func (p *process) get(ctx context.Context, path string) (string, error) {
	address := p.address()
	if address == "" {
		return "", errors.New("it serves nothing yet")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (p *process) address() string {
	for line := range strings.Lines(p.Log()) {
		var said struct{ Address string }
		if strings.Contains(line, "metrics and health are served") && json.Unmarshal([]byte(line), &said) == nil {
			return said.Address
		}
	}
	return ""
}

// owned is how many lanes the process owns; 0 while it does not say.
func (p *process) owned(ctx context.Context) int {
	body, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0
	}
	var sum float64
	for line := range strings.Lines(body) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(series, "heliograph_flow_lanes{") {
			v, err := strconv.ParseFloat(value, 64)
			if err == nil {
				sum += v
			}
		}
	}
	return int(sum)
}

// awaitOwned returns once the process owns at least so many lanes.
func (p *process) awaitOwned(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 90*time.Second, fmt.Errorf("process %d does not own %d lanes after 90 s", p.n, want))
	defer cancel()
	for p.owned(ctx) < want {
		if !p.Running() {
			return fmt.Errorf("process %d has ended by itself:\n%s", p.n, p.Tail(20))
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// pause lets time pass, unless the run ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
