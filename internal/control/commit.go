package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"heliograph/internal/mirror"
	"heliograph/internal/store"
)

// maxDocument bounds an adapter's value.
const maxDocument = 256 << 10

// Commit makes all changes or none. It returns the revision that holds them, which is the
// old one where they change nothing.
func (c *Control) Commit(ctx context.Context, changes ...Change) (Revision, error) {
	if !ActorOf(ctx).May(ScopeWrite) {
		return 0, errorf(Forbidden, "the token may not change anything")
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		old := c.state.Load()
		d, err := c.draft(ctx, old, changes)
		if err != nil || len(d.records) == 0 {
			// It may be another with what an instance beside us has just been told.
			if news, again := c.refresh(context.WithoutCancel(ctx)); again == nil && news {
				continue
			}
			return old.revision, err
		}
		// Once it is with the store, the one who asked may go away: it is decided there.
		err = c.store.Commit(context.WithoutCancel(ctx), int64(old.revision), d.records)
		if err == nil {
			c.state.Store(d.next)
			for _, ev := range d.events {
				c.events.publish(ev)
			}
			c.apply(d.next)
			return d.next.revision, nil
		}
		// Others were faster, or the answer is not known: what holds is what the store says.
		if _, again := c.refresh(context.WithoutCancel(ctx)); again != nil || !errors.Is(err, store.ErrStale) {
			return 0, stored(err)
		}
		if ctx.Err() != nil {
			return 0, stored(ctx.Err())
		}
	}
}

// draft is a commit that is not made yet.
type draft struct {
	c      *Control
	actor  Actor
	policy *Policy
	old    *state
	next   *state

	records  []store.Record
	events   []Event
	asked    map[mirror.FlowID]bool // flows that a change names
	touched  map[mirror.FlowID]bool // flows to be resolved anew, for a change of their own or of a cluster
	clusters map[string]bool        // clusters to be resolved anew
	fields   []Field
}

// draft applies changes to a state and checks the outcome.
func (c *Control) draft(ctx context.Context, old *state, changes []Change) (*draft, error) {
	d := &draft{
		c: c, actor: ActorOf(ctx), policy: c.policy.Load(), old: old, next: old.clone(),
		asked: map[mirror.FlowID]bool{}, touched: map[mirror.FlowID]bool{}, clusters: map[string]bool{},
	}
	d.next.revision = old.revision + 1
	for _, change := range changes {
		if err := d.change(change); err != nil {
			return nil, err
		}
	}
	if len(d.fields) > 0 {
		return nil, d.invalid()
	}
	d.next.sort()
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *draft) invalid() *Error {
	what := "a setting is"
	if len(d.fields) > 1 {
		what = fmt.Sprintf("%d settings are", len(d.fields))
	}
	return &Error{Kind: Invalid, Message: what + " wrong; nothing was changed", Fields: d.fields}
}

func (d *draft) change(change Change) error {
	switch ch := change.(type) {
	case PutCluster:
		return d.putCluster(ch)
	case DeleteCluster:
		return d.deleteCluster(ch)
	case PutFlow:
		return d.putFlow(ch)
	case DeleteFlow:
		return d.deleteFlow(ch)
	case PutDocument:
		return d.putDocument(ch)
	case DeleteDocument:
		return d.deleteDocument(ch)
	}
	return errorf(Internal, "a change of an unknown type %T", change)
}

// matched compares what is there with what the change expects.
func matched(m Match, resource string, exists bool, have Revision) error {
	switch {
	case m == Any, m == Absent && !exists:
		return nil
	case m == Absent:
		return errorf(Conflict, "%s exists already", resource)
	case !exists:
		return errorf(NotFound, "there is no %s", resource)
	case have != Revision(m):
		return errorf(Precondition, "%s has changed since it was read: it is at revision %d, not %d", resource, have, m)
	}
	return nil
}

// record adds the stored form of a resource.
func (d *draft) record(key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return &Error{Kind: Internal, Message: "it cannot be stored", Cause: err}
	}
	d.records = append(d.records, store.Record{Key: key, Value: data})
	return nil
}

func (d *draft) event(kind, resource, tenant string) {
	d.events = append(d.events, Event{Kind: kind, Resource: resource, Actor: d.actor.Name, tenant: tenant, Revision: d.next.revision})
}

var aliasPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (d *draft) field(resource, name, reason, hint string) {
	d.fields = append(d.fields, Field{Resource: resource, Name: name, Reason: reason, Hint: hint})
}

// checkMaps refuses what no properties file could hold, and labels nobody could select.
func (d *draft) checkMaps(resource string, properties, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == '=' || r == ':' || r == 0x7f }) {
			d.fields = append(d.fields, Field{Resource: resource, Name: key, Property: true, Reason: "not a key"})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !aliasPattern.MatchString(key) || len(labels[key]) > 256 {
			d.field(resource, "labels", fmt.Sprintf("%q is not a label", key), "a name of letters, digits, dots, underscores and dashes, and a value of at most 256 bytes")
		}
	}
	_, refused := d.policy.labelled(d.actor, labels)
	for _, key := range refused {
		d.field(resource, "labels", fmt.Sprintf("the label %s is the server's to give", key), "leave it out")
	}
}

func (d *draft) putCluster(ch PutCluster) error {
	cl := ch.Cluster.clone()
	resource := "cluster " + cl.Alias
	old, exists := d.next.clusters[cl.Alias]
	if exists && !d.policy.seesCluster(d.actor, old) {
		return errorf(Conflict, "the alias %s is taken", cl.Alias)
	}
	var have Revision
	if exists {
		have = old.Revision
	}
	if err := matched(ch.If, resource, exists, have); err != nil {
		return err
	}
	switch {
	case exists && old.File != "":
		return errorf(Forbidden, "%s stands in %s and is changed there", resource, old.File)
	case exists && !d.actor.Sees(old.Tenant):
		return errorf(Forbidden, "%s belongs to the server", resource)
	}
	if !aliasPattern.MatchString(cl.Alias) {
		d.field(resource, "alias", "not an alias", "letters, digits, dots, underscores and dashes, at most 128")
	}
	d.checkMaps(resource, cl.Properties, cl.Labels)
	cl.Labels, _ = d.policy.labelled(d.actor, cl.Labels)
	cl.File, cl.Tenant, cl.Revision = "", d.actor.Tenant, d.next.revision
	if exists {
		cl.Tenant = old.Tenant
		if maps.Equal(old.Properties, cl.Properties) && maps.Equal(old.Labels, cl.Labels) {
			return nil
		}
	}
	d.next.clusters[cl.Alias] = &heldCluster{Cluster: cl}
	d.clusters[cl.Alias] = true
	for id := range d.next.flows {
		if string(id.Source) == cl.Alias || string(id.Target) == cl.Alias {
			d.touch(id)
		}
	}
	d.event("cluster.put", resource, cl.Tenant)
	return d.record(clusterKey+cl.Alias, storedCluster{cl.Alias, cl.Properties, cl.Labels, cl.Tenant, cl.Revision})
}

// touch has a flow resolved anew. What is resolved is shared, so it gets a copy.
func (d *draft) touch(id mirror.FlowID) {
	h := d.next.flows[id]
	if h.File != "" {
		return
	}
	d.next.flows[id] = &heldFlow{Flow: h.Flow}
	d.touched[id] = true
}

func (d *draft) deleteCluster(ch DeleteCluster) error {
	resource := "cluster " + ch.Alias
	old, exists := d.next.clusters[ch.Alias]
	if !exists || !d.policy.seesCluster(d.actor, old) {
		return errorf(NotFound, "there is no %s", resource)
	}
	if err := matched(ch.If, resource, true, old.Revision); err != nil {
		return err
	}
	switch {
	case old.File != "":
		return errorf(Forbidden, "%s stands in %s and is removed there", resource, old.File)
	case !d.actor.Sees(old.Tenant):
		return errorf(Forbidden, "%s belongs to the server", resource)
	}
	delete(d.next.clusters, ch.Alias)
	d.records = append(d.records, store.Record{Key: clusterKey + ch.Alias})
	d.clusters[ch.Alias] = true
	d.event("cluster.deleted", resource, old.Tenant)
	return nil
}

func (d *draft) putFlow(ch PutFlow) error {
	f := ch.Flow.clone()
	id := f.ID()
	resource := "flow " + id.String()
	old, exists := d.next.flows[id]
	if exists && !d.actor.Sees(old.Tenant) {
		return errorf(Conflict, "%s exists already", resource)
	}
	var have Revision
	if exists {
		have = old.Revision
	}
	if err := matched(ch.If, resource, exists, have); err != nil {
		return err
	}
	if exists && old.File != "" {
		return errorf(Forbidden, "%s stands in %s and is changed there", resource, old.File)
	}
	d.checkMaps(resource, f.Properties, f.Labels)
	f.Labels, _ = d.policy.labelled(d.actor, f.Labels)
	f.File, f.Tenant, f.Revision = "", d.actor.Tenant, d.next.revision
	kind := "flow.put"
	if exists {
		f.Tenant = old.Tenant
		same := maps.Equal(old.Properties, f.Properties) && maps.Equal(old.Labels, f.Labels) && old.Enabled == f.Enabled
		switch {
		case same && old.Paused == f.Paused:
			return nil
		case same && f.Paused:
			kind = "flow.paused"
		case same:
			kind = "flow.resumed"
		}
		if same { // what it means has not changed
			d.next.flows[id] = &heldFlow{Flow: f, deployment: old.deployment, wanted: old.wanted}
		}
	}
	if kind == "flow.put" {
		d.next.flows[id] = &heldFlow{Flow: f}
		d.asked[id], d.touched[id] = true, true
	}
	d.event(kind, resource, f.Tenant)
	return d.record(flowKey+id.String(), storedFlow{
		f.Source, f.Target, f.Enabled, f.Paused, f.Properties, f.Labels, f.Tenant, f.Revision,
	})
}

func (d *draft) deleteFlow(ch DeleteFlow) error {
	id := Flow{Source: ch.Source, Target: ch.Target}.ID()
	resource := "flow " + id.String()
	old, exists := d.next.flows[id]
	if !exists || !d.actor.Sees(old.Tenant) {
		return errorf(NotFound, "there is no %s", resource)
	}
	if err := matched(ch.If, resource, true, old.Revision); err != nil {
		return err
	}
	if old.File != "" {
		return errorf(Forbidden, "%s stands in %s and is removed there", resource, old.File)
	}
	delete(d.next.flows, id)
	delete(d.touched, id)
	d.records = append(d.records, store.Record{Key: flowKey + id.String()})
	d.event("flow.deleted", resource, old.Tenant)
	return d.forgetRefusals(id)
}

func (d *draft) putDocument(ch PutDocument) error {
	key := docKey{ch.Kind, ch.ID}
	resource := ch.Kind + " " + ch.ID
	old, exists := d.next.documents[key]
	if exists && !d.actor.Sees(old.Tenant) {
		return errorf(Conflict, "%s exists already", resource)
	}
	if err := matched(ch.If, resource, exists, old.Revision); err != nil {
		return err
	}
	switch {
	case !aliasPattern.MatchString(ch.Kind) || ch.ID == "" || strings.ContainsAny(ch.ID, "\n"):
		return errorf(Internal, "%q is not a document's name", resource)
	case !json.Valid(ch.Value):
		return errorf(Internal, "the value of %s is not JSON", resource)
	case len(ch.Value) > maxDocument:
		return errorf(Invalid, "%s is larger than %d bytes", resource, maxDocument)
	}
	doc := Document{Kind: ch.Kind, ID: ch.ID, Value: slices.Clone(ch.Value), Tenant: d.actor.Tenant, Revision: d.next.revision}
	if exists {
		doc.Tenant = old.Tenant
		if string(old.Value) == string(doc.Value) {
			return nil
		}
	}
	d.next.documents[key] = doc
	d.event("document.put", "document "+ch.Kind+"/"+ch.ID, doc.Tenant)
	return d.record(documentKey+ch.Kind+"/"+ch.ID, storedDocument(doc))
}

func (d *draft) deleteDocument(ch DeleteDocument) error {
	key := docKey{ch.Kind, ch.ID}
	old, exists := d.next.documents[key]
	if !exists || !d.actor.Sees(old.Tenant) {
		return errorf(NotFound, "there is no %s %s", ch.Kind, ch.ID)
	}
	if err := matched(ch.If, ch.Kind+" "+ch.ID, true, old.Revision); err != nil {
		return err
	}
	delete(d.next.documents, key)
	d.records = append(d.records, store.Record{Key: documentKey + ch.Kind + "/" + ch.ID})
	d.event("document.deleted", "document "+ch.Kind+"/"+ch.ID, old.Tenant)
	return nil
}
