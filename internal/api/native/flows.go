package native

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/config"
	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

// The states of flows that do not run, beside those of [flow.State].
const (
	stateDisabled = "disabled"
	stateUnknown  = "unknown"
)

// FlowBody is what a flow is made of.
type FlowBody struct {
	Enabled    *bool             `json:"enabled,omitempty" doc:"False keeps the flow without running it; true where it is absent."`
	Paused     *bool             `json:"paused,omitempty" doc:"True stops the flow, and it keeps its place; absent, it stays as it is."`
	Properties map[string]string `json:"properties,omitempty" doc:"MirrorMaker's settings as they stand behind A->B. in an mm2.properties: topics, groups, replication.policy.class."`
	Labels     map[string]string `json:"labels,omitempty" doc:"Labels for people."`
}

// FlowView is a flow and where it stands.
type FlowView struct {
	Source     string            `json:"source"`
	Target     string            `json:"target"`
	Enabled    bool              `json:"enabled"`
	Paused     bool              `json:"paused"`
	State      string            `json:"state" doc:"starting, waiting, running, degraded, failed, stopped, paused, disabled or unknown."`
	Reason     string            `json:"reason,omitempty" doc:"Why it is not simply running."`
	Properties map[string]string `json:"properties"`
	Labels     map[string]string `json:"labels"`
	Tenant     string            `json:"tenant,omitempty"`
	File       string            `json:"file,omitempty" doc:"The file that it stands in; then it is read-only here."`
	Revision   int64             `json:"revision"`
}

// FlowInput names a flow in a path. It is exported for huma alone.
type FlowInput struct {
	Source string `path:"source" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9._-]+$" doc:"The source cluster's alias."`
	Target string `path:"target" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9._-]+$" doc:"The target cluster's alias."`
}

func (in FlowInput) id() mirror.FlowID {
	return mirror.FlowID{Source: mirror.ClusterAlias(in.Source), Target: mirror.ClusterAlias(in.Target)}
}

type flowOutput struct {
	ETag string `header:"ETag" doc:"The revision, for If-Match."`
	Body FlowView
}

// state is where a flow stands, in a word and a reason.
func (a *API) state(ctx context.Context, f *control.Flow) (state, reason string) {
	s, ok := a.o.Control.Status(ctx, f.Source, f.Target)
	switch {
	case ok:
		return string(s.State), s.Reason
	case f.Paused:
		return string(flow.Paused), ""
	case !f.Enabled:
		return stateDisabled, ""
	}
	return stateUnknown, "it is not run here: the server's log says why"
}

func (a *API) flowView(ctx context.Context, f *control.Flow) FlowView {
	v := FlowView{
		Source: f.Source, Target: f.Target, Enabled: f.Enabled, Paused: f.Paused, Properties: control.Shown(f.Properties),
		Labels: orEmpty(f.Labels), Tenant: f.Tenant, File: f.File, Revision: int64(f.Revision),
	}
	v.State, v.Reason = a.state(ctx, f)
	return v
}

func (a *API) registerFlows() {
	type listOutput struct{ Body List[FlowView] }
	huma.Register(a.huma, op("list-flows", http.MethodGet, "/flows", "Flows by source and target", "flows"),
		func(ctx context.Context, in *struct {
			PageInput
			Cluster string `query:"cluster" maxLength:"128" doc:"Only flows from or to this cluster."`
		},
		) (*listOutput, error) {
			all := a.o.Control.Flows(ctx)
			if in.Cluster != "" {
				all = slices.DeleteFunc(all, func(f control.Flow) bool { return f.Source != in.Cluster && f.Target != in.Cluster })
			}
			return &listOutput{pageOfPairs(all, in.PageInput, func(f *control.Flow) FlowView { return a.flowView(ctx, f) })}, nil
		})
	huma.Register(a.huma, op("get-flow", http.MethodGet, "/flows/{source}/{target}", "One flow", "flows", http.StatusNotFound),
		func(ctx context.Context, in *FlowInput) (*flowOutput, error) {
			f, err := a.o.Control.Flow(ctx, in.Source, in.Target)
			return a.flowAnswer(ctx, f, err)
		})
	huma.Register(a.huma, write("put-flow", http.MethodPut, "/flows/{source}/{target}", "Create or change a flow", "flows"),
		func(ctx context.Context, in *struct {
			FlowInput
			MatchInput
			Body FlowBody
		},
		) (*flowOutput, error) {
			m, exists, err := in.match()
			if err != nil {
				return nil, err
			}
			old, err := a.o.Control.Flow(ctx, in.Source, in.Target)
			if err != nil && exists {
				return nil, a.problemOf(err)
			}
			f, err := a.o.Control.PutFlow(ctx, in.Body.flow(in.Source, in.Target, &old), m)
			return a.flowAnswer(ctx, f, err)
		})
	huma.Register(a.huma, noContent(write("delete-flow", http.MethodDelete, "/flows/{source}/{target}", "Stop a flow and forget it; nothing is deleted on its clusters", "flows")),
		func(ctx context.Context, in *struct {
			FlowInput
			MatchInput
		},
		) (*struct{}, error) {
			m, _, err := in.match()
			if err != nil {
				return nil, err
			}
			return nil, a.answer(a.o.Control.DeleteFlow(ctx, in.Source, in.Target, m))
		})
	a.registerFlowActions()
}

func (a *API) registerFlowActions() {
	huma.Register(a.huma, write("pause-flow", http.MethodPost, "/flows/{source}/{target}/pause", "Stop a flow; it keeps its place", "flows"),
		func(ctx context.Context, in *FlowInput) (*flowOutput, error) {
			f, err := a.o.Control.Pause(ctx, in.Source, in.Target)
			return a.flowAnswer(ctx, f, err)
		})
	huma.Register(a.huma, write("resume-flow", http.MethodPost, "/flows/{source}/{target}/resume", "Start a paused flow where it stopped", "flows"),
		func(ctx context.Context, in *FlowInput) (*flowOutput, error) {
			f, err := a.o.Control.Resume(ctx, in.Source, in.Target)
			return a.flowAnswer(ctx, f, err)
		})
	huma.Register(a.huma, write("restart-flow", http.MethodPost, "/flows/{source}/{target}/restart", "Stop a flow and start it again where it was", "flows"),
		func(ctx context.Context, in *FlowInput) (*flowOutput, error) {
			if err := a.o.Control.Restart(ctx, in.Source, in.Target); err != nil {
				return nil, a.problemOf(err)
			}
			f, err := a.o.Control.Flow(ctx, in.Source, in.Target)
			return a.flowAnswer(ctx, f, err)
		})
	huma.Register(a.huma, write("put-flow-rate", http.MethodPut, "/flows/{source}/{target}/rate", "Cap a flow, without a restart", "flows"),
		func(ctx context.Context, in *struct {
			FlowInput
			Body RateBody
		},
		) (*flowOutput, error) {
			f, err := a.o.Control.Flow(ctx, in.Source, in.Target)
			if err != nil {
				return nil, a.problemOf(err)
			}
			f.Properties = in.Body.in(f.Properties)
			f, err = a.o.Control.PutFlow(ctx, f, control.At(f.Revision))
			return a.flowAnswer(ctx, f, err)
		})
	type settingsOutput struct{ Body List[SettingView] }
	huma.Register(a.huma, op("get-settings", http.MethodGet, "/flows/{source}/{target}/settings", "What a flow runs with, defaults included", "flows", http.StatusNotFound),
		func(ctx context.Context, in *FlowInput) (*settingsOutput, error) {
			dep, err := a.o.Control.Resolved(ctx, in.Source, in.Target)
			if err != nil {
				return nil, a.problemOf(err)
			}
			out := &settingsOutput{}
			out.Body.Items = []SettingView{}
			if f := flowOf(dep, in.id()); f != nil {
				for _, e := range f.Effective() {
					s := SettingView{Key: e.Key, Value: e.Value, Origin: "default"}
					switch {
					case e.Origin.IsDefault():
					case e.Origin.Line > 0:
						s.Origin = e.Origin.String()
					default:
						s.Origin = e.Origin.File
					}
					out.Body.Items = append(out.Body.Items, s)
				}
			}
			return out, nil
		})
}

// SettingView is one effective setting.
type SettingView struct {
	Key    string `json:"key"`
	Value  string `json:"value" doc:"Secrets are hidden."`
	Origin string `json:"origin" doc:"The resource or file that says so; default where none does."`
}

func flowOf(dep *config.Deployment, id mirror.FlowID) *config.Flow {
	for i := range dep.Flows {
		if dep.Flows[i].ID == id {
			return &dep.Flows[i]
		}
	}
	return nil
}

// flow is the body as control wants it.
func (b FlowBody) flow(source, target string, stored *control.Flow) control.Flow {
	f := control.Flow{
		Source: source, Target: target, Enabled: b.Enabled == nil || *b.Enabled, Paused: stored.Paused,
		Properties: control.Unhidden(b.Properties, stored.Properties), Labels: b.Labels,
	}
	if b.Paused != nil {
		f.Paused = *b.Paused
	}
	return f
}

func (a *API) flowAnswer(ctx context.Context, f control.Flow, err error) (*flowOutput, error) {
	if err != nil {
		return nil, a.problemOf(err)
	}
	return &flowOutput{etag(f.Revision), a.flowView(ctx, &f)}, nil
}
