package native

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// StatusView is how a flow stands.
type StatusView struct {
	Flow          string     `json:"flow"`
	State         string     `json:"state"`
	Reason        string     `json:"reason,omitempty"`
	Since         *time.Time `json:"since,omitempty" doc:"When the state began."`
	Lanes         int        `json:"lanes" doc:"Lanes that this instance owns."`
	Fence         string     `json:"fence,omitempty" doc:"How sure it is that the last owner is silent."`
	Topics        int        `json:"topics"`
	Partitions    int        `json:"partitions"`
	Parked        int        `json:"parked" doc:"Partitions that wait for a person."`
	Records       int64      `json:"records" doc:"Acknowledged since the flow started here."`
	Bytes         int64      `json:"bytes"`
	LagRecords    int64      `json:"lag_records"`
	LagSeconds    float64    `json:"lag_seconds"`
	Losses        int64      `json:"losses" doc:"Entries that this instance wrote to the loss ledger."`
	LostRecords   int64      `json:"lost_records"`
	ThrottledFor  float64    `json:"throttled_seconds"`
	LastHeartbeat *time.Time `json:"last_heartbeat,omitempty"`
	Jobs          []JobView  `json:"jobs"`
}

// JobView is one periodic job.
type JobView struct {
	Name    string     `json:"name"`
	Every   float64    `json:"every_seconds"`
	LastRun *time.Time `json:"last_run,omitempty"`
	NextRun *time.Time `json:"next_run,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// PartitionView is one partition of a flow.
type PartitionView struct {
	Topic         string     `json:"topic"`
	Partition     int32      `json:"partition"`
	Remote        string     `json:"remote"`
	Lane          int32      `json:"lane"`
	State         string     `json:"state" doc:"waiting, running or parked."`
	Reason        string     `json:"reason,omitempty" doc:"Why it waits or is parked, and what to choose."`
	Since         *time.Time `json:"since,omitempty"`
	Next          int64      `json:"next_source_offset"`
	Written       int64      `json:"next_target_offset"`
	SourceStart   int64      `json:"source_start"`
	SourceEnd     int64      `json:"source_end"`
	LagRecords    int64      `json:"lag_records"`
	LagSeconds    float64    `json:"lag_seconds"`
	Records       int64      `json:"records"`
	Bytes         int64      `json:"bytes"`
	Foreign       int64      `json:"foreign_offsets"`
	Skipped       int64      `json:"skipped_records"`
	LatencyMillis int64      `json:"latency_ms"`
}

// HeldView is a change of a copy's setting that waits because it could delete records.
type HeldView struct {
	Topic    string    `json:"topic"`
	Setting  string    `json:"setting"`
	Wish     string    `json:"wish" doc:"What the source has."`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until" doc:"When it is made if nobody decides."`
	Accepted bool      `json:"accepted"`
	Refused  bool      `json:"refused"`
}

// TopicView is one selected topic.
type TopicView struct {
	Source     string `json:"source"`
	Remote     string `json:"remote"`
	Partitions int32  `json:"partitions"`
	State      string `json:"state" doc:"replicated, creating or parked."`
	Reason     string `json:"reason,omitempty"`
	Hint       string `json:"hint,omitempty"`
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func statusView(s *flow.Status) StatusView {
	v := StatusView{
		Flow: s.ID.String(), State: string(s.State), Reason: s.Reason, Since: at(s.Since), Lanes: s.Lanes, Fence: s.Fence,
		Topics: s.Topics, Partitions: len(s.Partitions), Parked: s.Parked(), Losses: s.Losses, LostRecords: s.LostRecords,
		ThrottledFor: s.ThrottledFor.Seconds(), LastHeartbeat: at(s.HeartbeatAt), Jobs: []JobView{},
	}
	v.LagRecords, v.LagSeconds = s.Lag()
	for i := range s.Partitions {
		v.Records += s.Partitions[i].Records
		v.Bytes += s.Partitions[i].Bytes
	}
	for _, j := range s.Jobs {
		v.Jobs = append(v.Jobs, JobView{Name: j.Name, Every: j.Every.Seconds(), LastRun: at(j.LastRun), NextRun: at(j.NextRun), Error: j.Err})
	}
	return v
}

func topicView(t *flow.TopicStatus) TopicView {
	return TopicView{Source: t.Source, Remote: t.Remote, Partitions: t.Partitions, State: string(t.State), Reason: t.Reason, Hint: t.Hint}
}

func partitionView(p *flow.PartitionStatus) PartitionView {
	return PartitionView{
		Topic: p.Source.Topic, Partition: p.Source.Partition, Remote: p.Target.Topic, Lane: p.Lane, State: p.State, Reason: p.Reason, Since: at(p.Since),
		Next: int64(p.Next), Written: int64(p.Written), SourceStart: int64(p.SourceStart), SourceEnd: int64(p.SourceEnd),
		LagRecords: p.LagRecords, LagSeconds: p.LagSeconds, Records: p.Records, Bytes: p.Bytes, Foreign: p.ForeignOffsets, Skipped: p.SkippedRecords,
		LatencyMillis: p.LatencyMillis,
	}
}

// status is a flow's, of one that does not run here too.
func (a *API) status(ctx context.Context, in FlowInput) (flow.Status, error) {
	f, err := a.o.Control.Flow(ctx, in.Source, in.Target)
	if err != nil {
		return flow.Status{}, a.problemOf(err)
	}
	return a.statusOf(ctx, &f), nil
}

func (a *API) statusOf(ctx context.Context, f *control.Flow) flow.Status {
	s, ok := a.o.Control.Status(ctx, f.Source, f.Target)
	if !ok {
		state, reason := a.state(ctx, f)
		s = flow.Status{ID: f.ID(), State: flow.State(state), Reason: reason}
	}
	return s
}

// EndsInput selects flows by their clusters. It is exported for huma alone.
type EndsInput struct {
	Source string `query:"source" maxLength:"128" doc:"Only flows from this cluster."`
	Target string `query:"target" maxLength:"128" doc:"Only flows into this cluster."`
}

// flows are those that the actor may see between such clusters, in control's order.
func (a *API) flows(ctx context.Context, in EndsInput) []control.Flow {
	return slices.DeleteFunc(a.o.Control.Flows(ctx), func(f control.Flow) bool {
		return in.Source != "" && f.Source != in.Source || in.Target != "" && f.Target != in.Target
	})
}

func (a *API) registerStatusList() {
	type listOutput struct{ Body List[StatusView] }
	huma.Register(a.huma, op("list-status", http.MethodGet, "/status", "How flows stand on this instance, those that do not run too", "state"),
		func(ctx context.Context, in *struct {
			PageInput
			EndsInput
		},
		) (*listOutput, error) {
			return &listOutput{pageOfPairs(a.flows(ctx, in.EndsInput), in.PageInput, func(f *control.Flow) StatusView {
				s := a.statusOf(ctx, f)
				return statusView(&s)
			})}, nil
		})
}

// partitionName sorts as partitions are ordered: by topic, then by number.
func partitionName(p *flow.PartitionStatus) string {
	return fmt.Sprintf("%s/%010d", p.Source.Topic, p.Source.Partition)
}

func (a *API) registerState() {
	a.registerStatusList()
	type statusOutput struct{ Body StatusView }
	huma.Register(a.huma, op("get-status", http.MethodGet, "/flows/{source}/{target}/status", "How a flow stands on this instance", "state", http.StatusNotFound),
		func(ctx context.Context, in *FlowInput) (*statusOutput, error) {
			s, err := a.status(ctx, *in)
			if err != nil {
				return nil, err
			}
			return &statusOutput{statusView(&s)}, nil
		})
	type topicsOutput struct{ Body List[TopicView] }
	huma.Register(a.huma, op("list-topics", http.MethodGet, "/flows/{source}/{target}/topics", "The topics that a flow selects, as of its last look", "state", http.StatusNotFound),
		func(ctx context.Context, in *struct {
			FlowInput
			PageInput
		},
		) (*topicsOutput, error) {
			if _, err := a.o.Control.Flow(ctx, in.Source, in.Target); err != nil {
				return nil, a.problemOf(err)
			}
			var all []flow.TopicStatus
			if a.o.Engine != nil {
				all = slices.SortedFunc(slices.Values(a.o.Engine.Topics(in.id())), func(x, y flow.TopicStatus) int { return cmp.Compare(x.Source, y.Source) })
			}
			return &topicsOutput{page(all, in.PageInput, func(t *flow.TopicStatus) string { return t.Source }, topicView)}, nil
		})
	type partitionsOutput struct{ Body List[PartitionView] }
	huma.Register(a.huma, op("list-partitions", http.MethodGet, "/flows/{source}/{target}/partitions", "The partitions of a flow on this instance", "state", http.StatusNotFound),
		func(ctx context.Context, in *struct {
			FlowInput
			PageInput
			State string `query:"state" enum:"waiting,running,parked" doc:"Only partitions in this state."`
			Topic string `query:"topic" maxLength:"249" doc:"Only partitions of this source topic."`
		},
		) (*partitionsOutput, error) {
			s, err := a.status(ctx, in.FlowInput)
			if err != nil {
				return nil, err
			}
			var some []flow.PartitionStatus
			for _, p := range s.Partitions {
				if (in.State == "" || p.State == in.State) && (in.Topic == "" || p.Source.Topic == in.Topic) {
					some = append(some, p)
				}
			}
			slices.SortFunc(some, func(x, y flow.PartitionStatus) int { return cmp.Compare(partitionName(&x), partitionName(&y)) })
			return &partitionsOutput{page(some, in.PageInput, partitionName, partitionView)}, nil
		})
	a.registerDecisions()
}

// AnswerBody is where a parked partition goes on.
type AnswerBody struct {
	Choice string `json:"choice" enum:"start,end,scan,keep" doc:"start copies again from the source's start, behind what the target holds; end copies what comes from now on; scan reads both logs and goes on where they stop matching; keep believes the position."`
}

func (a *API) registerDecisions() {
	huma.Register(a.huma, noContent(write("answer-partition", http.MethodPost, "/flows/{source}/{target}/partitions/{topic}/{partition}/answer",
		"Tell where a parked partition goes on", "state")),
		func(ctx context.Context, in *struct {
			FlowInput
			Topic     string `path:"topic" minLength:"1" maxLength:"249" doc:"The source topic."`
			Partition int32  `path:"partition" minimum:"0" doc:"Its number."`
			Body      AnswerBody
		},
		) (*struct{}, error) {
			if err := a.mayDecide(ctx, in.FlowInput); err != nil {
				return nil, err
			}
			return nil, decision(a.o.Engine.Answer(in.id(), kafka.TopicPartition{Topic: in.Topic, Partition: in.Partition}, in.Body.Choice))
		})
	type heldOutput struct{ Body List[HeldView] }
	huma.Register(a.huma, op("list-held", http.MethodGet, "/flows/{source}/{target}/held", "Changes of settings that wait because they could delete records", "state", http.StatusNotFound),
		func(ctx context.Context, in *FlowInput) (*heldOutput, error) {
			if _, err := a.o.Control.Flow(ctx, in.Source, in.Target); err != nil {
				return nil, a.problemOf(err)
			}
			out := &heldOutput{}
			out.Body.Items = []HeldView{}
			if a.o.Engine != nil {
				for _, h := range a.o.Engine.Held(in.id()) {
					out.Body.Items = append(out.Body.Items, HeldView(h))
				}
			}
			return out, nil
		})
	for _, verb := range []struct {
		name, summary string
		accept        bool
	}{
		{"accept", "Let a waiting change of a setting be made now", true},
		{"refuse", "Keep a waiting change to that value from being made, over restarts too", false},
	} {
		huma.Register(a.huma, noContent(write(verb.name+"-held", http.MethodPost, "/flows/{source}/{target}/held/{topic}/{setting}/"+verb.name, verb.summary, "state")),
			func(ctx context.Context, in *struct {
				FlowInput
				Topic   string `path:"topic" minLength:"1" maxLength:"249" doc:"The target topic."`
				Setting string `path:"setting" minLength:"1" maxLength:"249" doc:"The topic's setting, such as retention.ms."`
			},
			) (*struct{}, error) {
				if err := a.mayDecide(ctx, in.FlowInput); err != nil {
					return nil, err
				}
				return nil, a.decide(ctx, in.id(), in.Topic, in.Setting, verb.accept)
			})
	}
}

// mayDecide says whether the actor may decide things of a flow that runs here.
func (a *API) mayDecide(ctx context.Context, in FlowInput) error {
	if _, err := a.o.Control.Flow(ctx, in.Source, in.Target); err != nil {
		return a.problemOf(err)
	}
	if err := mayWrite(ctx); err != nil {
		return err
	}
	if a.o.Engine == nil {
		return refuse(http.StatusConflict, "nothing runs here")
	}
	return nil
}

// decide has a held change made or refused. A refusal is remembered first, so that none is told
// that a restart forgets.
func (a *API) decide(ctx context.Context, id mirror.FlowID, topic, setting string, accept bool) error {
	if accept {
		if err := decision(a.o.Engine.Decide(id, topic, setting, true)); err != nil {
			return err
		}
		return a.answer(a.o.Control.Unrefuse(ctx, id, topic, setting))
	}
	for _, h := range a.o.Engine.Held(id) {
		if h.Topic == topic && h.Setting == setting {
			if err := a.o.Control.Refuse(ctx, id, topic, setting, h.Wish); err != nil {
				return a.problemOf(err)
			}
		}
	}
	return decision(a.o.Engine.Decide(id, topic, setting, false))
}

// decision is the problem of a decision that nothing waited for.
func decision(err error) error {
	if err == nil {
		return nil
	}
	return refuse(http.StatusConflict, err.Error())
}
