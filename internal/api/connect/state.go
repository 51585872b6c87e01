package connect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/control"
	"heliograph/internal/flow"
)

// state is a connector's, or a task's.
type state string

// Connect's states.
const (
	running    state = "RUNNING"
	paused     state = "PAUSED"
	stopped    state = "STOPPED"
	failed     state = "FAILED"
	unassigned state = "UNASSIGNED"
)

type connectorStatus struct {
	Name      string      `json:"name"`
	Connector workerState `json:"connector"`
	Tasks     []taskState `json:"tasks"`
	Type      string      `json:"type"`
}

type workerState struct {
	State    state  `json:"state"`
	WorkerID string `json:"worker_id"`
	Trace    string `json:"trace,omitempty"`
}

type taskState struct {
	ID int `json:"id"`
	workerState
}

// statusOf tells how a connector is. Its one task stands for the flow in this
// process: it is unassigned while the flow starts or waits for a cluster, and failed
// while something needs a person.
func (h *handler) statusOf(r *request, c connector, f control.Flow) connectorStatus {
	st, there := h.o.Control.Status(r.Context(), f.Source, f.Target)
	whole, task := stateOf(f, &st, there)
	out := connectorStatus{
		Name: c.String(), Type: "source", Tasks: []taskState{},
		Connector: workerState{State: whole, WorkerID: h.worker},
	}
	trace := ""
	if task == failed || task == unassigned {
		trace = st.Reason
	}
	if whole == failed {
		out.Connector.Trace = trace
	}
	if whole != stopped {
		out.Tasks = append(out.Tasks, taskState{0, workerState{State: task, WorkerID: h.worker, Trace: trace}})
	}
	return out
}

// stateOf is the state of a flow's connectors and of their tasks.
func stateOf(f control.Flow, st *flow.Status, there bool) (whole, task state) {
	switch {
	case !f.Enabled:
		return stopped, stopped
	case f.Paused:
		return paused, paused
	case !there:
		return unassigned, unassigned
	}
	switch st.State {
	case flow.Starting, flow.Waiting:
		return running, unassigned
	case flow.Degraded:
		return running, failed
	case flow.Failed:
		return failed, failed
	case flow.Stopped:
		return unassigned, unassigned
	default:
		return running, running
	}
}

func (h *handler) status(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	return ok(h.statusOf(r, c, f))
}

// taskOf checks the path's task: there is one, numbered 0.
func (h *handler) taskOf(r *request) (connector, control.Flow, error) {
	c, f, err := h.find(r)
	if err != nil {
		return c, f, err
	}
	if n, err := strconv.Atoi(r.PathValue("task")); err != nil || n != 0 || !f.Enabled {
		return c, f, &Error{404, fmt.Sprintf("No status found for task %s-%s", c, r.PathValue("task"))}
	}
	return c, f, nil
}

func (h *handler) taskStatus(r *request) (reply, error) {
	c, f, err := h.taskOf(r)
	if err != nil {
		return reply{}, err
	}
	return ok(h.statusOf(r, c, f).Tasks[0])
}

type taskConfig struct {
	ID     taskID            `json:"id"`
	Config map[string]string `json:"config"`
}

func (h *handler) tasks(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	out := []taskConfig{}
	for _, id := range tasksOf(c, f) {
		out = append(out, taskConfig{id, h.configOf(r, c, f)})
	}
	return ok(out)
}

func (h *handler) tasksConfig(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	out := map[string]map[string]string{}
	for _, id := range tasksOf(c, f) {
		out[fmt.Sprintf("%s-%d", c, id.Task)] = h.configOf(r, c, f)
	}
	return ok(out)
}

func (h *handler) pause(r *request) (reply, error)  { return h.halt(r, paused) }
func (h *handler) stop(r *request) (reply, error)   { return h.halt(r, stopped) }
func (h *handler) resume(r *request) (reply, error) { return h.halt(r, running) }

// halt brings a flow into one of the three states that people ask for.
func (h *handler) halt(r *request, want state) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	enabled, pause := want != stopped, want == paused
	if f.Enabled != enabled || f.Paused != pause {
		if !c.primary() {
			return reply{}, conflict("%s follows its flow: ask the same of %s", c, connector{kinds[0], c.source, c.target})
		}
		f.Enabled, f.Paused = enabled, pause
		if _, err := h.o.Control.Commit(r.Context(), control.PutFlow{Flow: f, If: control.At(f.Revision)}); err != nil {
			return reply{}, err
		}
	}
	if want == stopped {
		return done(204)
	}
	return done(202)
}

// restart starts the flow again, or with onlyFailed only one that needs it.
func (h *handler) restart(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	var includeTasks, onlyFailed bool
	for name, to := range map[string]*bool{"includeTasks": &includeTasks, "onlyFailed": &onlyFailed} {
		if v := r.URL.Query().Get(name); v != "" {
			if *to, err = strconv.ParseBool(v); err != nil {
				return reply{}, badRequest("[%s] must be true or false", name)
			}
		}
	}
	before := h.statusOf(r, c, f)
	broken := before.Connector.State == failed || slices.ContainsFunc(before.Tasks, func(t taskState) bool { return t.State == failed })
	if !onlyFailed || broken {
		if err := h.o.Control.Restart(r.Context(), c.source, c.target); err != nil {
			return reply{}, err
		}
	}
	if includeTasks || onlyFailed {
		return reply{202, h.statusOf(r, c, f)}, nil
	}
	return done(204)
}

func (h *handler) restartTask(r *request) (reply, error) {
	c, _, err := h.taskOf(r)
	if err != nil {
		return reply{}, err
	}
	if err := h.o.Control.Restart(r.Context(), c.source, c.target); err != nil {
		return reply{}, err
	}
	return done(204)
}

func (h *handler) topics(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	topics := []string{}
	if st, there := h.o.Control.Status(r.Context(), f.Source, f.Target); there && c.primary() {
		for i := range st.Partitions {
			topics = append(topics, st.Partitions[i].Target.Topic)
		}
	}
	slices.Sort(topics)
	return ok(map[string]any{c.String(): map[string]any{"topics": slices.Compact(topics)}})
}

// sourceOffset is one of a connector's offsets in MirrorMaker's words.
type sourceOffset struct {
	Partition any              `json:"partition"`
	Offset    map[string]int64 `json:"offset"`
}

type sourcePartition struct {
	Cluster   string `json:"cluster"`
	Partition int32  `json:"partition"`
	Topic     string `json:"topic"`
}

// offsets tells the positions: of every partition the offset of the last record that
// was copied, as MirrorMaker keeps it. The two other connectors keep none that mean
// anything.
func (h *handler) offsets(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	out := []sourceOffset{}
	if !c.primary() {
		return ok(map[string]any{"offsets": out})
	}
	st, there := h.o.Control.Status(r.Context(), f.Source, f.Target)
	if !there {
		return reply{}, conflict("the flow does not run here, so its positions are not at hand: `heliograph inspect` reads them from the target")
	}
	for i := range st.Partitions {
		p := &st.Partitions[i]
		if p.Next <= 0 {
			continue // nothing was copied yet
		}
		out = append(out, sourceOffset{
			Partition: sourcePartition{f.Source, p.Source.Partition, p.Source.Topic},
			Offset:    map[string]int64{"offset": int64(p.Next) - 1},
		})
	}
	slices.SortFunc(out, func(a, b sourceOffset) int { return strings.Compare(fmt.Sprint(a.Partition), fmt.Sprint(b.Partition)) })
	return ok(map[string]any{"offsets": out})
}
