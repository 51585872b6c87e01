package flow

// Update takes over what of a changed specification a flow can follow while it runs: the
// filters of topics, groups and settings, and its cap. The rest of the specification must be as
// it was. Partitions that stay selected are not disturbed.
func (f *Flow) Update(spec Spec) {
	f.brake.SetRate(spec.BytesPerSecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.update = &spec
	f.mu.parts.take(spec)
}

// take hands the changed filters to the jobs and has them look at once.
func (p *parts) take(spec Spec) {
	if p.topics != nil {
		p.topics.SetDesired(spec.Desired())
	}
	if p.configs != nil {
		p.configs.SetRules(spec.Desired().Configs)
	}
	if p.acls != nil {
		p.acls.SetSelection(spec.Selection)
	}
	if p.groups != nil {
		p.groups.SetFilters(spec.Groups, spec.Selection.Filter)
	}
	p.kick()
}

// kick has all jobs look at once.
func (p *parts) kick() {
	for _, l := range p.loops {
		l.Kick()
	}
}
