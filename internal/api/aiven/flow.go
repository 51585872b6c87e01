package aiven

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/api/adapter"
	"heliograph/internal/api/jsonobject"
	"heliograph/internal/control"
	"heliograph/internal/flow"
)

// replicationFlow is what Aiven's clients read.
type replicationFlow struct {
	SourceCluster string   `json:"source_cluster"`
	TargetCluster string   `json:"target_cluster"`
	Enabled       bool     `json:"enabled"`
	Topics        []string `json:"topics"`
	// The same list under its old name and its new one.
	TopicsBlacklist                 []string `json:"topics.blacklist,omitempty"`
	TopicsExclude                   []string `json:"topics_exclude,omitempty"`
	ReplicationPolicyClass          string   `json:"replication_policy_class"`
	SyncGroupOffsetsEnabled         bool     `json:"sync_group_offsets_enabled"`
	SyncGroupOffsetsIntervalSeconds int64    `json:"sync_group_offsets_interval_seconds"`
	EmitHeartbeatsEnabled           bool     `json:"emit_heartbeats_enabled"`
	EmitBackwardHeartbeatsEnabled   bool     `json:"emit_backward_heartbeats_enabled"`
	OffsetSyncsTopicLocation        string   `json:"offset_syncs_topic_location"`
	OffsetLagMax                    int64    `json:"offset_lag_max"`
	ConfigPropertiesExclude         *string  `json:"config_properties_exclude,omitempty"`
	ReplicationFactor               *int64   `json:"replication_factor,omitempty"`
	ExactlyOnceDeliveryEnabled      bool     `json:"exactly_once_delivery_enabled"`
	FollowerFetchingEnabled         bool     `json:"follower_fetching_enabled"`
	// ReplicationProgress is the part of the source's records that is behind us, 0 to 1.
	ReplicationProgress *float64 `json:"replication_progress,omitempty"`
}

// setting is a field whose value is a setting of MirrorMaker.
type setting struct {
	field, key string
	value      func(o *jsonobject.Object, field string) (value string, given bool)
}

const mirrorPackage = "org.apache.kafka.connect.mirror."

// settings are the fields that are settings of MirrorMaker and no more.
var settings = []setting{
	{"topics", "topics", patterns},
	{"replication_policy_class", "replication.policy.class", oneOf(mirrorPackage+"DefaultReplicationPolicy", mirrorPackage+"IdentityReplicationPolicy")},
	{"sync_group_offsets_enabled", "sync.group.offsets.enabled", flag},
	{"sync_group_offsets_interval_seconds", "sync.group.offsets.interval.seconds", within(1, 86400)},
	{"emit_heartbeats_enabled", "emit.heartbeats.enabled", flag},
	{"offset_syncs_topic_location", "offset-syncs.topic.location", oneOf("source", "target")},
	{"offset_lag_max", "offset.lag.max", within(0, math.MaxInt32)},
	{"replication_factor", keyFactor, within(1, math.MaxInt16)},
}

// The settings that need a second look.
const (
	keyExclude       = "topics.exclude"
	keyConfigExclude = "config.properties.exclude"
	keyExactlyOnce   = "exactly.once.support"
	keyFactor        = "replication.factor"
)

// excludeFields are Aiven's names of one list, the oldest first.
var excludeFields = []string{"topics.blacklist", "topics.exclude", "topics_exclude"}

// neverCopied is what Aiven excludes whatever else is excluded.
const neverCopied = "unclean.leader.election.enable"

func patterns(o *jsonobject.Object, field string) (string, bool) {
	list, given := o.Patterns(field)
	if given && len(list) == 0 {
		o.Fail(field, "names no topic")
	}
	return strings.Join(list, ","), given
}

func flag(o *jsonobject.Object, field string) (string, bool) {
	v, given := o.Flag(field)
	return strconv.FormatBool(v), given
}

func within(least, most int64) func(*jsonobject.Object, string) (string, bool) {
	return func(o *jsonobject.Object, field string) (string, bool) {
		v, given := o.Within(field, least, most)
		return strconv.FormatInt(v, 10), given
	}
}

func oneOf(words ...string) func(*jsonobject.Object, string) (string, bool) {
	return func(o *jsonobject.Object, field string) (string, bool) { return o.Enum(field, words...) }
}

// defaults are what a flow has that says nothing: Aiven's values where they differ
// from ours.
func defaults() map[string]string {
	return map[string]string{
		"topics": ".*", "emit.heartbeats.enabled": "false", "sync.group.offsets.enabled": "false",
		"sync.group.offsets.interval.seconds": "60", "offset.lag.max": "100",
	}
}

// fill takes over what a body says about a flow's settings.
func fill(o *jsonobject.Object, f *control.Flow) {
	for _, s := range settings {
		if v, given := s.value(o, s.field); given {
			f.Properties[s.key] = v
		}
	}
	excludes(o, f)
	if v, given := o.Text("config_properties_exclude"); given {
		entries := slices.DeleteFunc(adapter.Entries(v), func(e string) bool { return e == neverCopied })
		f.Properties[keyConfigExclude] = strings.Join(append(entries, neverCopied), ",")
	}
	if on, given := o.Flag("exactly_once_delivery_enabled"); given {
		// Whether it is possible is the target's setting; "required" refuses the flow otherwise.
		delete(f.Properties, keyExactlyOnce)
		if on {
			f.Properties[keyExactlyOnce] = "required"
		}
	}
	if on, _ := o.Flag("emit_backward_heartbeats_enabled"); on {
		o.Fail("emit_backward_heartbeats_enabled", "is not to be had for a flow: make the flow in the other direction, which writes them")
	}
	if on, _ := o.Flag("diskless_az_enabled"); on {
		o.Fail("diskless_az_enabled", "is about Aiven's diskless topics, which heliograph cannot make")
	}
	jsonobject.Read[float64](o, "replication_progress", "number") // read-only
}

// excludes reads the list that has three names.
func excludes(o *jsonobject.Object, f *control.Flow) {
	var said []string
	for _, field := range excludeFields {
		v, given := o.Patterns(field)
		if !given {
			continue
		}
		if said != nil && !slices.Equal(said, v) {
			o.Fail(field, "says something else than the same list under another name")
		}
		said = v
		delete(f.Properties, keyExclude)
		if len(v) > 0 {
			f.Properties[keyExclude] = strings.Join(v, ",")
		}
	}
}

// shown is a flow as Aiven's clients read it.
func (h *handler) shown(r *http.Request, f control.Flow) replicationFlow {
	p := defaults()
	maps.Copy(p, f.Properties)
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(p[key], 10, 64)
		return n
	}
	out := replicationFlow{
		SourceCluster: f.Source, TargetCluster: f.Target, Enabled: f.Enabled && !f.Paused, Topics: adapter.Entries(p["topics"]),
		TopicsBlacklist: adapter.Entries(p[keyExclude]), TopicsExclude: adapter.Entries(p[keyExclude]),
		ReplicationPolicyClass:          cmp.Or(p["replication.policy.class"], mirrorPackage+"DefaultReplicationPolicy"),
		SyncGroupOffsetsEnabled:         p["sync.group.offsets.enabled"] == "true",
		SyncGroupOffsetsIntervalSeconds: number("sync.group.offsets.interval.seconds"),
		EmitHeartbeatsEnabled:           p["emit.heartbeats.enabled"] == "true",
		OffsetSyncsTopicLocation:        cmp.Or(p["offset-syncs.topic.location"], "source"),
		OffsetLagMax:                    number("offset.lag.max"),
		ExactlyOnceDeliveryEnabled:      p[keyExactlyOnce] == "required",
	}
	if v, ok := p[keyConfigExclude]; ok {
		entries := slices.DeleteFunc(adapter.Entries(v), func(e string) bool { return e == neverCopied })
		out.ConfigPropertiesExclude = new(strings.Join(entries, ","))
	}
	if n := number(keyFactor); n > 0 {
		out.ReplicationFactor = &n
	}
	if c, err := h.o.Control.Cluster(r.Context(), f.Source); err == nil {
		out.FollowerFetchingEnabled = c.Properties["consumer.client.rack"] != ""
	}
	if st, ok := h.o.Control.Status(r.Context(), f.Source, f.Target); ok {
		out.ReplicationProgress = progress(&st)
	}
	return out
}

// progress is the part of what the source holds that has been copied; nil while
// nothing is known of the source.
func progress(st *flow.Status) *float64 {
	var done, all float64
	for i := range st.Partitions {
		p := &st.Partitions[i]
		span := float64(p.SourceEnd - p.SourceStart)
		all += span
		done += min(max(float64(p.Next-p.SourceStart), 0), span)
	}
	switch {
	case len(st.Partitions) == 0:
		return nil
	case all == 0:
		return new(1.0)
	}
	return new(done / all)
}

var aliasPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (h *handler) list(r *http.Request, _ []byte) (int, any, error) {
	out := []replicationFlow{}
	for _, f := range h.o.Control.Flows(r.Context()) {
		out = append(out, h.shown(r, f))
	}
	return http.StatusOK, map[string]any{"replication_flows": out}, nil
}

func (h *handler) create(r *http.Request, data []byte) (int, any, error) {
	o := jsonobject.Parse(data)
	f := control.Flow{Source: o.Required("source_cluster"), Target: o.Required("target_cluster"), Properties: defaults()}
	for field, alias := range map[string]string{"source_cluster": f.Source, "target_cluster": f.Target} {
		if alias != "" && !aliasPattern.MatchString(alias) {
			o.Fail(field, "%q is not an alias: letters, digits, dots, underscores and dashes, at most 128", alias)
		}
	}
	enabled, given := o.Flag("enabled")
	if !given {
		o.Fail("enabled", "is required")
	}
	f.Enabled = enabled
	fill(o, &f)
	h.followers(r, o, &f)
	if err := o.Done(); err != nil {
		return 0, nil, err
	}
	_, err := h.o.Control.PutFlow(r.Context(), f, control.Absent)
	if control.KindOf(err) == control.Conflict {
		if _, there := h.o.Control.Flow(r.Context(), f.Source, f.Target); there == nil {
			return 0, nil, &Error{Status: http.StatusConflict, Message: fmt.Sprintf("Replication flow from %s to %s already exists", f.Source, f.Target)}
		}
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]string{"message": "created"}, nil
}

// followers checks follower_fetching_enabled against what the source's settings say:
// racks are a cluster's.
func (h *handler) followers(r *http.Request, o *jsonobject.Object, f *control.Flow) {
	on, given := o.Flag("follower_fetching_enabled")
	if !given {
		return
	}
	c, err := h.o.Control.Cluster(r.Context(), f.Source)
	if err != nil {
		return // it is said by the commit
	}
	if has := c.Properties["consumer.client.rack"] != ""; on != has {
		o.Fail("follower_fetching_enabled", "is decided by the setting consumer.client.rack of cluster %s", f.Source)
	}
}

// flowOf is the flow that the path names.
func (h *handler) flowOf(r *http.Request) (control.Flow, error) {
	return h.o.Control.Flow(r.Context(), r.PathValue("source_cluster"), r.PathValue("target_cluster"))
}

func (h *handler) read(r *http.Request, _ []byte) (int, any, error) {
	f, err := h.flowOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"replication_flow": h.shown(r, f)}, nil
}

func (h *handler) update(r *http.Request, data []byte) (int, any, error) {
	f, err := h.flowOf(r)
	if err != nil {
		return 0, nil, err
	}
	o := jsonobject.Parse(data)
	o.Fixed("source_cluster", f.Source)
	o.Fixed("target_cluster", f.Target)
	if f.Properties == nil {
		f.Properties = map[string]string{}
	}
	if enabled, given := o.Flag("enabled"); given {
		if f.Enabled = enabled; enabled {
			f.Paused = false // "enabled" is all that this API knows of it
		}
	}
	fill(o, &f)
	h.followers(r, o, &f)
	if err := o.Done(); err != nil {
		return 0, nil, err
	}
	changed, err := h.o.Control.PutFlow(r.Context(), f, control.At(f.Revision))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"replication_flow": h.shown(r, changed)}, nil
}

func (h *handler) delete(r *http.Request, _ []byte) (int, any, error) {
	f, err := h.flowOf(r)
	if err != nil {
		return 0, nil, err
	}
	if err := h.o.Control.DeleteFlow(r.Context(), f.Source, f.Target, control.At(f.Revision)); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]string{"message": "deleted"}, nil
}
