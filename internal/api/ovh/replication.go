package ovh

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/api/adapter"
	"heliograph/internal/control"
)

// replication is cloud.project.database.service.Replication.
type replication struct {
	ID                     string   `json:"id"`
	SourceIntegration      string   `json:"sourceIntegration"`
	TargetIntegration      string   `json:"targetIntegration"`
	ReplicationPolicyClass string   `json:"replicationPolicyClass"`
	Topics                 []string `json:"topics"`
	TopicExcludeList       []string `json:"topicExcludeList"`
	SyncGroupOffsets       bool     `json:"syncGroupOffsets"`
	SyncInterval           int64    `json:"syncInterval"` // seconds
	EmitHeartbeats         bool     `json:"emitHeartbeats"`
	Enabled                bool     `json:"enabled"`
}

// MirrorMaker's names of what a replication sets.
const (
	keyTopics       = "topics"
	keyExclude      = "topics.exclude"
	keySyncOffsets  = "sync.group.offsets.enabled"
	keySyncInterval = "sync.group.offsets.interval.seconds"
	keyHeartbeats   = "emit.heartbeats.enabled"
	keyPolicy       = "replication.policy.class"

	defaultPolicy  = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
	identityPolicy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
)

// maxInterval bounds syncInterval: a day.
const maxInterval = 86400

// newReplication is a replication of which only the clusters are said.
func newReplication() replication {
	return replication{
		ReplicationPolicyClass: defaultPolicy, Topics: []string{".*"}, TopicExcludeList: []string{}, SyncInterval: 60,
	}
}

// properties are the replication's settings over those that are there.
func (r *replication) properties(old map[string]string) map[string]string {
	p := map[string]string{}
	maps.Copy(p, old)
	p[keyTopics] = strings.Join(r.Topics, ",")
	if len(r.TopicExcludeList) > 0 {
		p[keyExclude] = strings.Join(r.TopicExcludeList, ",")
	} else {
		delete(p, keyExclude) // MirrorMaker's own list holds then
	}
	p[keySyncOffsets] = strconv.FormatBool(r.SyncGroupOffsets)
	p[keySyncInterval] = strconv.FormatInt(r.SyncInterval, 10)
	p[keyHeartbeats] = strconv.FormatBool(r.EmitHeartbeats)
	p[keyPolicy] = r.ReplicationPolicyClass
	return p
}

// settings fills in what a flow says.
func (r *replication) settings(f *control.Flow) {
	p := f.Properties
	r.Enabled = f.Enabled && !f.Paused
	if v, ok := p[keyTopics]; ok {
		r.Topics = adapter.Entries(v)
	}
	r.TopicExcludeList = adapter.Entries(p[keyExclude])
	r.SyncGroupOffsets = p[keySyncOffsets] == "true"
	if n, err := strconv.ParseInt(p[keySyncInterval], 10, 64); err == nil {
		r.SyncInterval = n
	}
	r.EmitHeartbeats = p[keyHeartbeats] != "false"
	if v, ok := p[keyPolicy]; ok {
		r.ReplicationPolicyClass = v
	}
}

// fill takes over what a body says about the settings.
func (r *replication) fill(b body) {
	enabled, given := b.Flag("enabled")
	if !given {
		b.Fail("enabled", "is required")
	}
	r.Enabled = enabled
	if v, ok := b.Patterns("topics"); ok {
		if len(v) == 0 {
			b.Fail("topics", "names no topic")
		}
		r.Topics = v
	}
	if v, ok := b.Patterns("topicExcludeList"); ok {
		r.TopicExcludeList = v
	}
	if v, ok := b.Flag("syncGroupOffsets"); ok {
		r.SyncGroupOffsets = v
	}
	if v, ok := b.Within("syncInterval", 1, maxInterval); ok {
		r.SyncInterval = v
	}
	if v, ok := b.Flag("emitHeartbeats"); ok {
		r.EmitHeartbeats = v
	}
	if v, ok := b.Enum("replicationPolicyClass", defaultPolicy, identityPolicy); ok {
		r.ReplicationPolicyClass = v
	}
}

// replicationDocument joins a replication to its integrations. Everything else is
// in the flow between their clusters.
type replicationDocument struct {
	Project           string `json:"project"`
	Service           string `json:"service"`
	SourceIntegration string `json:"sourceIntegration"`
	TargetIntegration string `json:"targetIntegration"`
	Source            string `json:"source"` // the clusters' aliases
	Target            string `json:"target"`
}

// stored is a replication with the flow that it is.
type stored struct {
	id       string
	doc      replicationDocument
	revision control.Revision
	flow     control.Flow
}

func (s *stored) answer() replication {
	r := newReplication()
	r.ID, r.SourceIntegration, r.TargetIntegration = s.id, s.doc.SourceIntegration, s.doc.TargetIntegration
	r.settings(&s.flow)
	return r
}

// load adds the flow to a document. A flow that went another way took its
// replication with it.
func (h *Handler) load(c *call, d control.Document) (stored, error) {
	s := stored{id: d.ID, revision: d.Revision}
	if err := json.Unmarshal(d.Value, &s.doc); err != nil {
		return stored{}, err
	}
	var err error
	s.flow, err = h.o.Control.Flow(c.Context(), s.doc.Source, s.doc.Target)
	return s, err
}

// replicationByID is a replication of a MirrorMaker service.
func (h *Handler) replicationByID(c *call, service, id string) (stored, error) {
	d, err := h.o.Control.Document(c.Context(), kindReplication, id)
	if err == nil {
		var s stored
		if s, err = h.load(c, d); err == nil && s.doc.Project == c.project && s.doc.Service == service {
			return s, nil
		}
	}
	if err != nil && control.KindOf(err) != control.NotFound {
		return stored{}, err
	}
	return stored{}, notFound(classNotFound, "there is no replication %s on service %s", id, service)
}

// replicationsOf are the replications of a MirrorMaker service.
func (h *Handler) replicationsOf(c *call, service string) []stored {
	var out []stored
	for _, d := range h.o.Control.Documents(c.Context(), kindReplication) {
		if s, err := h.load(c, d); err == nil && s.doc.Project == c.project && s.doc.Service == service {
			out = append(out, s)
		}
	}
	return out
}

// replicationOf is the one that the path names.
func (h *Handler) replicationOf(c *call) (stored, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return stored{}, err
	}
	return h.replicationByID(c, s.id, c.PathValue("replicationId"))
}

func (h *Handler) listReplications(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, r := range h.replicationsOf(c, s.id) {
		ids = append(ids, r.id)
	}
	return ids, nil
}

func (h *Handler) getReplication(c *call) (any, error) {
	r, err := h.replicationOf(c)
	if err != nil {
		return nil, err
	}
	return r.answer(), nil
}

func (h *Handler) createReplication(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	b := c.body()
	r := newReplication()
	r.SourceIntegration, r.TargetIntegration = b.uuid("sourceIntegration"), b.uuid("targetIntegration")
	r.fill(b)
	if err := b.Done(); err != nil {
		return nil, err
	}
	if r.SourceIntegration == r.TargetIntegration {
		return nil, badRequest("[targetIntegration] is the source as well; a replication needs two Kafka services")
	}
	source, err := h.linkByID(c, s.id, r.SourceIntegration)
	if err != nil {
		return nil, err
	}
	target, err := h.linkByID(c, s.id, r.TargetIntegration)
	if err != nil {
		return nil, err
	}
	r.ID = newID()
	doc := replicationDocument{
		Project: c.project, Service: s.id, SourceIntegration: source.id, TargetIntegration: target.id,
		Source: source.doc.Alias, Target: target.doc.Alias,
	}
	f := control.Flow{Source: doc.Source, Target: doc.Target, Enabled: r.Enabled, Properties: r.properties(nil)}
	_, err = h.o.Control.Commit(c.Context(),
		control.PutFlow{Flow: f, If: control.Absent},
		control.PutDocument{Kind: kindReplication, ID: r.ID, Value: encode(doc), If: control.Absent},
		source.using(r.ID, true), target.using(r.ID, true))
	if control.KindOf(err) == control.Conflict {
		if other := h.between(c, doc.Source, doc.Target); other != "" {
			return nil, conflict("there is a replication between these services already: %s", other)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// between is the id of the project's replication from one cluster to another; empty
// where there is none.
func (h *Handler) between(c *call, source, target string) string {
	for _, d := range h.o.Control.Documents(c.Context(), kindReplication) {
		if s, err := h.load(c, d); err == nil && s.doc.Project == c.project && s.doc.Source == source && s.doc.Target == target {
			return s.id
		}
	}
	return ""
}

// updateReplication changes the fields that are given and keeps the others.
func (h *Handler) updateReplication(c *call) (any, error) {
	s, err := h.replicationOf(c)
	if err != nil {
		return nil, err
	}
	r := s.answer()
	b := c.body()
	b.Fixed("id", r.ID)
	b.Fixed("sourceIntegration", r.SourceIntegration)
	b.Fixed("targetIntegration", r.TargetIntegration)
	r.fill(b)
	if err := b.Done(); err != nil {
		return nil, err
	}
	f := s.flow
	f.Properties = r.properties(f.Properties)
	if f.Enabled = r.Enabled; f.Enabled {
		f.Paused = false // "enabled" is all that this API knows of it
	}
	if _, err := h.o.Control.Commit(c.Context(), control.PutFlow{Flow: f, If: control.At(s.flow.Revision)}); err != nil {
		return nil, err
	}
	return r, nil
}

func (h *Handler) deleteReplication(c *call) (any, error) {
	s, err := h.replicationOf(c)
	if err != nil {
		return nil, err
	}
	changes := []control.Change{
		control.DeleteFlow{Source: s.doc.Source, Target: s.doc.Target, If: control.At(s.flow.Revision)},
		control.DeleteDocument{Kind: kindReplication, ID: s.id, If: control.At(s.revision)},
	}
	for _, id := range slices.Compact([]string{s.doc.SourceIntegration, s.doc.TargetIntegration}) {
		l, err := h.linkByID(c, s.doc.Service, id)
		if err != nil {
			return nil, err
		}
		changes = append(changes, l.using(s.id, false))
	}
	_, err = h.o.Control.Commit(c.Context(), changes...)
	return nil, err
}
