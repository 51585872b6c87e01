package native

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
)

// ChangeBody is one change of several: exactly one of its parts.
type ChangeBody struct {
	PutCluster    *ClusterChange `json:"put_cluster,omitempty" doc:"Register or change a cluster."`
	PutFlow       *FlowChange    `json:"put_flow,omitempty" doc:"Create or change a flow."`
	DeleteCluster *ClusterRef    `json:"delete_cluster,omitempty" doc:"Forget a cluster."`
	DeleteFlow    *FlowRef       `json:"delete_flow,omitempty" doc:"Stop and forget a flow."`
	Revision      int64          `json:"revision,omitempty" minimum:"0" doc:"The revision that was read; a change of another one is refused. Absent takes any."`
}

// ClusterRef names a cluster.
type ClusterRef struct {
	Alias string `json:"alias" minLength:"1" maxLength:"128"`
}

// FlowRef names a flow.
type FlowRef struct {
	Source string `json:"source" minLength:"1" maxLength:"128"`
	Target string `json:"target" minLength:"1" maxLength:"128"`
}

// ClusterChange is a cluster with its name.
type ClusterChange struct {
	ClusterRef
	ClusterBody
}

// FlowChange is a flow with its name.
type FlowChange struct {
	FlowRef
	FlowBody
}

// DiffView is what changes do.
type DiffView struct {
	Revision  int64              `json:"revision" doc:"That of the last change."`
	Resources []ResourceDiffView `json:"resources"`
	Warnings  []ProblemField     `json:"warnings" doc:"Remarks on what would then be there."`
}

// ResourceDiffView is one resource's change.
type ResourceDiffView struct {
	Resource string            `json:"resource" doc:"cluster A, or flow A->B."`
	Action   string            `json:"action" doc:"create, update or delete."`
	Settings []SettingDiffView `json:"settings"`
	Effect   string            `json:"effect,omitempty" doc:"What becomes of a flow: none, start, stop, live (no partition is disturbed) or restart (only this flow)."`
	Why      string            `json:"why,omitempty" doc:"What asks for that effect."`
}

// SettingDiffView is one setting's change. Secrets are hidden.
type SettingDiffView struct {
	Name string  `json:"name"`
	Old  *string `json:"old,omitempty" doc:"Absent where it was not set."`
	New  *string `json:"new,omitempty" doc:"Absent where it is not set any more."`
}

// ChangesBody are changes that are made all together or not at all.
type ChangesBody struct {
	Changes []ChangeBody `json:"changes" minItems:"1" maxItems:"1000" doc:"All are made, or none."`
}

type changesInput struct{ Body ChangesBody }

type diffOutput struct{ Body DiffView }

func (a *API) registerChanges() {
	huma.Register(a.huma, write("plan", http.MethodPost, "/plan", "What changes would do, as a diff; nothing is changed", "changes"),
		func(ctx context.Context, in *changesInput) (*diffOutput, error) {
			changes, err := a.changes(ctx, in.Body.Changes)
			if err != nil {
				return nil, err
			}
			d, err := a.o.Control.DryRun(ctx, changes...)
			if err != nil {
				return nil, a.problemOf(err)
			}
			return &diffOutput{a.diffView(d)}, nil
		})
	huma.Register(a.huma, write("apply", http.MethodPost, "/apply", "Make several changes, all or none, and tell what they did", "changes"),
		func(ctx context.Context, in *changesInput) (*diffOutput, error) {
			changes, err := a.changes(ctx, in.Body.Changes)
			if err != nil {
				return nil, err
			}
			d, err := a.o.Control.DryRun(ctx, changes...)
			if err == nil {
				_, err = a.o.Control.Commit(ctx, changes...)
			}
			if err != nil {
				return nil, a.problemOf(err)
			}
			return &diffOutput{a.diffView(d)}, nil
		})
}

// changes are control's for the body's.
func (a *API) changes(ctx context.Context, bodies []ChangeBody) ([]control.Change, error) {
	var out []control.Change
	for i := range bodies {
		b := &bodies[i]
		m := control.Any
		if b.Revision > 0 {
			m = control.Match(b.Revision)
		}
		n := len(out)
		if c := b.PutCluster; c != nil {
			old, _ := a.o.Control.Cluster(ctx, c.Alias) // one that is not there has no stored secrets
			out = append(out, control.PutCluster{Cluster: control.Cluster{Alias: c.Alias, Properties: control.Unhidden(c.Properties, old.Properties), Labels: c.Labels}, If: m})
		}
		if f := b.PutFlow; f != nil {
			old, _ := a.o.Control.Flow(ctx, f.Source, f.Target) // as above
			out = append(out, control.PutFlow{Flow: f.flow(f.Source, f.Target, &old), If: m})
		}
		if c := b.DeleteCluster; c != nil {
			out = append(out, control.DeleteCluster{Alias: c.Alias, If: m})
		}
		if f := b.DeleteFlow; f != nil {
			out = append(out, control.DeleteFlow{Source: f.Source, Target: f.Target, If: m})
		}
		if len(out) != n+1 {
			return nil, newProblem(http.StatusUnprocessableEntity, "a change is one of put_cluster, put_flow, delete_cluster and delete_flow",
				&huma.ErrorDetail{Location: "body.changes[" + strconv.Itoa(i) + "]", Message: "exactly one of them is needed"})
		}
	}
	return out, nil
}

func (a *API) diffView(d *control.Diff) DiffView {
	v := DiffView{Revision: int64(a.o.Control.Revision()), Resources: []ResourceDiffView{}, Warnings: []ProblemField{}}
	for _, r := range d.Resources {
		rv := ResourceDiffView{Resource: r.Resource, Action: r.Action, Settings: []SettingDiffView{}, Effect: string(r.Effect.Kind), Why: r.Effect.Why}
		for _, s := range r.Settings {
			rv.Settings = append(rv.Settings, SettingDiffView{Name: s.Name, Old: s.Old, New: s.New})
		}
		v.Resources = append(v.Resources, rv)
	}
	for _, w := range d.Warnings {
		v.Warnings = append(v.Warnings, ProblemField{Resource: w.Resource, Field: w.Name, Reason: w.Reason, Hint: w.Hint})
	}
	return v
}
