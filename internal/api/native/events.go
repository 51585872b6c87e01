package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"heliograph/internal/control"
)

const (
	statusEvery = time.Second // of the live status
	pingEvery   = 15 * time.Second
	maxStreams  = 200 // at the same time
)

// EventView is something that happened.
type EventView struct {
	Seq      uint64    `json:"seq" doc:"Grows with every event; give it as after to go on."`
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind" doc:"flow.put, flow.paused, cluster.deleted, …; lost where the subscriber was too slow."`
	Resource string    `json:"resource"`
	Actor    string    `json:"actor,omitempty"`
	Message  string    `json:"message,omitempty"`
	Revision int64     `json:"revision,omitempty"`
}

// Ping says that the stream is alive.
type Ping struct {
	Time time.Time `json:"time"`
}

// StatusList is the status of the flows that were asked for.
type StatusList struct {
	Time  time.Time    `json:"time"`
	Items []StatusView `json:"items"`
}

func eventView(e control.Event) EventView {
	return EventView{Seq: e.Seq, Time: e.Time.UTC(), Kind: e.Kind, Resource: e.Resource, Actor: e.Actor, Message: e.Message, Revision: int64(e.Revision)}
}

func (a *API) registerEvents() {
	type listOutput struct{ Body List[EventView] }
	type afterInput struct {
		After int64 `query:"after" minimum:"0" doc:"The seq of the last event that is known."`
	}
	huma.Register(a.huma, op("list-events", http.MethodGet, "/events", "What happened lately, oldest first", "events"),
		func(ctx context.Context, in *afterInput) (*listOutput, error) {
			out := &listOutput{}
			out.Body.Items = []EventView{}
			for _, e := range a.o.Control.Events(ctx, uint64(in.After)) {
				out.Body.Items = append(out.Body.Items, eventView(e))
			}
			return out, nil
		})
	streams := make(chan struct{}, maxStreams)
	a.registerEventStream(streams)
	a.registerStatusStream(streams)
}

func (a *API) registerEventStream(streams chan struct{}) {
	sse.Register(a.huma, op("stream-events", http.MethodGet, "/events/stream", "What happens, as it happens", "events"),
		map[string]any{"event": EventView{}, "ping": Ping{}},
		func(ctx context.Context, in *struct {
			After  int64 `query:"after" minimum:"0" doc:"The seq of the last event that is known."`
			LastID int64 `header:"Last-Event-ID" minimum:"0" doc:"What a browser sends when it connects again."`
		}, send sse.Sender,
		) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if !enter(streams) {
				return
			}
			defer func() { <-streams }()
			ping := time.NewTicker(pingEvery)
			defer ping.Stop()
			events := a.o.Control.Subscribe(ctx, uint64(max(in.After, in.LastID)))
			if send.Data(Ping{time.Now().UTC()}) != nil {
				return
			}
			for {
				var err error
				select {
				case <-ctx.Done():
					return
				case e, ok := <-events:
					if !ok {
						return
					}
					err = send(sse.Message{ID: int(e.Seq), Data: eventView(e)})
				case now := <-ping.C:
					err = send.Data(Ping{now.UTC()})
				}
				if err != nil {
					return
				}
			}
		})
}

func (a *API) registerStatusStream(streams chan struct{}) {
	sse.Register(a.huma, op("stream-status", http.MethodGet, "/status/stream", "How flows stand, every second while it changes", "state"),
		map[string]any{"status": StatusList{}},
		func(ctx context.Context, in *EndsInput, send sse.Sender) {
			if !enter(streams) {
				return
			}
			defer func() { <-streams }()
			look := time.NewTicker(statusEvery)
			defer look.Stop()
			for now := time.Now(); ; {
				if send.Data(StatusList{now.UTC(), a.statuses(ctx, *in)}) != nil {
					return
				}
				select {
				case <-ctx.Done():
					return
				case now = <-look.C:
				}
			}
		})
}

func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// statuses are those of the flows that run here, at most a page of them.
func (a *API) statuses(ctx context.Context, in EndsInput) []StatusView {
	views := []StatusView{}
	for _, f := range a.flows(ctx, in) {
		if s, ok := a.o.Control.Status(ctx, f.Source, f.Target); ok {
			views = append(views, statusView(&s))
		}
		if len(views) == 1000 {
			break
		}
	}
	return views
}
