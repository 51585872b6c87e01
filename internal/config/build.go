package config

import (
	"slices"
	"strings"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// builder turns resolved views into the typed model.
type builder struct {
	*report
	resolver
	aliases  []mirror.ClusterAlias
	compiled map[string]mirror.Patterns // by their text: most flows share most filters
}

// reader reads typed values of a view and keeps what it read, for Effective.
// Values that cannot be read were refused when their keys were checked; here
// they count as absent.
type reader struct {
	view
	keys     *catalogue
	settings map[string]Setting
}

func (r *reader) note(key, shown string, at Origin) {
	r.settings[key] = Setting{Key: key, Value: redact(shown), Origin: at}
}

// get returns the value of a key that the file holds.
func (r *reader) get(key string) (value, bool) {
	val, ok := r.view[key]
	return val, ok
}

func (r *reader) text(key, def string) string {
	if val, ok := r.get(key); ok && trim(val.Text) != "" {
		r.note(key, val.shown(r.keys.secret(key)), val.Origin)
		return trim(val.Text)
	}
	r.note(key, def, Origin{})
	return def
}

// choice reads one of several words, in the spelling of the list.
func (r *reader) choice(key, def string, values ...string) string {
	if val, ok := r.get(key); ok {
		for _, v := range values {
			if strings.EqualFold(v, trim(val.Text)) {
				r.note(key, v, val.Origin)
				return v
			}
		}
	}
	r.note(key, def, Origin{})
	return def
}

func (r *reader) boolean(key string, def bool) bool {
	text := "false"
	if def {
		text = "true"
	}
	return r.choice(key, text, "true", "false") == "true"
}

func (r *reader) integer(key string, bits int, def int64) int64 {
	if val, ok := r.get(key); ok {
		if n, ok := val.integer(bits); ok {
			r.note(key, trim(val.Raw), val.Origin)
			return n
		}
	}
	r.note(key, itoa(def), Origin{})
	return def
}

func (r *reader) factor(key string, def int16) int16 {
	return int16(r.integer(key, 16, int64(def)))
}

// every reads a pair of keys: <name>.enabled and <name>.interval.seconds.
func (r *reader) every(name string, on bool, seconds int64) Every {
	enabled := r.boolean(name+".enabled", on)
	key := name + ".interval.seconds"
	val, set := r.get(key)
	if _, ok := val.integer(64); !ok {
		set = false
	}
	n := r.integer(key, 64, seconds)
	if !enabled || n <= 0 || n > int64(1<<63-1)/int64(time.Second) {
		return Every{Set: set}
	}
	return Every{Interval: time.Duration(n) * time.Second, Set: set}
}

// items reads a list; old is the key's former name, used where the new one is silent.
func (r *reader) items(key, old, def string) []string {
	for _, k := range []string{key, old} {
		if val, ok := r.get(k); ok && k != "" {
			list := val.list()
			shown := val.shown(false)
			if val.Items != nil {
				shown = strings.Join(list, ", ")
			}
			r.note(key, shown, val.Origin)
			return list
		}
	}
	r.note(key, def, Origin{})
	return mirror.SplitList(def)
}

// patterns reads a filter. What cannot be compiled was refused when its key was
// checked; here it matches nothing.
func (b *builder) patterns(r *reader, key, old, def string) mirror.Patterns {
	items := r.items(key, old, def)
	text := strings.Join(items, "\x00")
	if p, ok := defaultPatterns()[text]; ok {
		return p
	}
	if p, ok := b.compiled[text]; ok && len(items) > 0 {
		return p
	}
	p, err := mirror.CompilePatterns(items)
	if err != nil {
		p = mirror.Patterns{}
	}
	if len(items) > 0 {
		b.compiled[text] = p
	}
	return p
}

// defaultPatterns are the filters of flows that say nothing of them, which is most: compiled
// once for all loads.
var defaultPatterns = sync.OnceValue(func() map[string]mirror.Patterns {
	all := map[string]mirror.Patterns{}
	for _, list := range []string{
		mirror.DefaultTopics, mirror.DefaultTopicsExclude4, mirror.DefaultTopicsExclude39,
		mirror.DefaultGroups, mirror.DefaultGroupsExclude, mirror.DefaultConfigPropertiesExclude,
	} {
		items := mirror.SplitList(list)
		if p, err := mirror.CompilePatterns(items); err == nil && len(items) > 0 {
			all[strings.Join(items, "\x00")] = p
		}
	}
	return all
})

// flow builds one flow.
func (b *builder) flow(p pair) Flow {
	conn, worker := b.connector(p.id, mirror.SourceConnector), b.worker(p.id)
	r := &reader{view: conn, keys: b.keys, settings: map[string]Setting{}}
	f := Flow{ID: p.id}
	f.Enabled = r.boolean("enabled", false)
	if p.enabled {
		f.Enabled = true
	}
	b.naming(&f, r)
	b.filters(&f, r)
	f.Topics = Topics{
		Refresh:            r.every("refresh.topics", true, 5),
		SyncConfigs:        r.every("sync.topic.configs", true, 60),
		SyncACLs:           r.every("sync.topic.acls", true, 60),
		ReplicationFactor:  r.factor("replication.factor", 2),
		DefaultsFromSource: r.choice("use.defaults.from", "target", "source", "target") == "source",
		HoldDeletions:      holdDeletions(r),
	}
	f.Heartbeats = Heartbeats{Every: r.every("emit.heartbeats", true, 1), ReplicationFactor: r.factor("heartbeats.topic.replication.factor", 3)}
	if !p.heartbeats {
		f.Heartbeats.Every.Interval = 0
	}
	f.OffsetSyncs = OffsetSyncs{
		Enabled:           r.boolean("emit.offset-syncs.enabled", true),
		OnSource:          r.choice("offset-syncs.topic.location", "source", "source", "target") == "source",
		LagMax:            r.integer("offset.lag.max", 64, 100),
		ReplicationFactor: r.factor("offset-syncs.topic.replication.factor", 3),
	}
	f.Checkpoints = Checkpoints{
		Emit:              r.every("emit.checkpoints", true, 5),
		RefreshGroups:     r.every("refresh.groups", true, 5),
		SyncGroups:        r.every("sync.group.offsets", false, 5),
		SyncDeletions:     r.boolean("heliograph.sync.group.deletions", false),
		ReplicationFactor: r.factor("checkpoints.topic.replication.factor", 3),
	}
	if !f.OffsetSyncs.Enabled {
		f.Checkpoints.Emit.Interval = 0
	}
	if !f.Checkpoints.Emit.On() {
		f.Checkpoints.SyncGroups.Interval = 0
	}
	if val, ok := r.get("tasks.max"); ok {
		if n, ok := val.integer(32); ok {
			f.TasksMax = Opt[int32]{Value: int32(n), Set: true}
			r.note("tasks.max", trim(val.Raw), val.Origin)
		}
	}
	b.positions(&f, r, worker)
	f.Positions.ProgressGroup = progressGroup(&f, r)
	b.data(&f, r)
	b.losses(&f, r)
	b.clients(&f, conn, worker, r)
	if val, ok := b.raw[p.id.String()+".heliograph.rate.bytes.per.second"]; ok {
		f.BytesPerSecond = rate(val)
		r.note("heliograph.rate.bytes.per.second", trim(val.Raw), val.Origin)
	}
	f.effective = sortedSettings(r.settings)
	return f
}

// progressGroup is on where the file lets heliograph write to the source anyway.
func progressGroup(f *Flow, r *reader) string {
	const off = "off"
	def := off
	if f.OffsetSyncs.Enabled && f.OffsetSyncs.OnSource {
		def = mirror.ProgressGroup(f.ID)
	}
	group := r.text("heliograph.progress.group", def)
	if strings.EqualFold(group, off) {
		return ""
	}
	return group
}

// rate reads a cap; zero is none.
func rate(val value) int64 {
	n, err := parseSize(val.Text)
	if err != nil { // "unlimited", or refused when the key was checked
		return 0
	}
	return n
}

func holdDeletions(r *reader) time.Duration {
	const key = "heliograph.retention.hold.hours"
	if val, ok := r.get(key); ok && strings.EqualFold(trim(val.Text), "off") {
		r.note(key, "off", val.Origin)
		return 0
	}
	const century = 100 * 365 * 24
	return time.Duration(min(r.integer(key, 64, 24), century)) * time.Hour
}

func (b *builder) filters(f *Flow, r *reader) {
	exclude := mirror.DefaultTopicsExclude4
	if f.Naming.Baseline {
		exclude = mirror.DefaultTopicsExclude39
	}
	f.Selection = mirror.TopicSelection{
		Policy: f.Policy,
		Filter: mirror.TopicFilter{
			Include: b.patterns(r, "topics", "", mirror.DefaultTopics),
			Exclude: b.patterns(r, "topics.exclude", "topics.blacklist", exclude),
		},
		Target:              f.ID.Target,
		ReplicateHeartbeats: r.boolean("heartbeats.replication.enabled", true),
	}
	f.Groups = mirror.GroupFilter{
		Include: b.patterns(r, "groups", "", mirror.DefaultGroups),
		Exclude: b.patterns(r, "groups.exclude", "groups.blacklist", mirror.DefaultGroupsExclude),
	}
	f.Configs = mirror.ConfigFilter{
		Exclude: b.patterns(r, "config.properties.exclude", "config.properties.blacklist", mirror.DefaultConfigPropertiesExclude),
	}
}

// positions reads the keys of the worker that say where positions are kept.
func (b *builder) positions(f *Flow, r *reader, worker view) {
	w := &reader{view: worker, keys: b.keys, settings: map[string]Setting{}}
	f.Positions = Positions{
		GroupID:           w.text("group.id", string(f.ID.Source)+"-mm2"),
		Topic:             w.text("offset.storage.topic", mirror.PositionsTopic(f.ID.Source)),
		Partitions:        int32(w.integer("offset.storage.partitions", 32, 25)),
		ReplicationFactor: w.factor("offset.storage.replication.factor", 3),
		Commit:            Every{Interval: 5 * time.Second},
	}
	if val, ok := r.get("offsets.storage.topic"); ok && trim(val.Text) != "" {
		f.Positions.Topic = trim(val.Text)
		w.note("offset.storage.topic", val.Raw, val.Origin)
	}
	if val, ok := worker["offset.storage.cleanup.policy"]; ok {
		b.warnf(val.Origin, "remove it", "ignored: the positions topic is always compacted")
	}
	if d := worker.millis("offset.flush.interval.ms"); d.Set && d.Value > 0 {
		f.Positions.Commit = Every{Interval: d.Value, Set: true}
		w.note("offset.flush.interval.ms", trim(worker["offset.flush.interval.ms"].Raw), worker["offset.flush.interval.ms"].Origin)
	} else {
		w.note("offset.flush.interval.ms", "5000", Origin{})
	}
	f.ExactlyOnce = ExactlyOnce(w.choice("exactly.once.source.support", string(ExactlyOnceDisabled),
		string(ExactlyOnceDisabled), string(ExactlyOncePreparing), string(ExactlyOnceEnabled)))
	for key, s := range w.settings {
		s.Key = "worker." + key
		r.settings[s.Key] = s
	}
}

// data reads what the source consumer and the record producer say of copying.
func (b *builder) data(f *Flow, r *reader) {
	consumer := connectorClient(r.view, "source", "consumer")
	producer := recordProducer(b.worker(f.ID), r.view)
	f.Data = Data{
		FetchMaxBytes:     consumer.int32("fetch.max.bytes"),
		PartitionMaxBytes: consumer.int32("max.partition.fetch.bytes"),
		FetchMaxWait:      consumer.millis("fetch.max.wait.ms"),
		MaxRequestBytes:   producer.int32("max.request.size"),
		RequestTimeout:    producer.millis("request.timeout.ms"),
		StartAtLatest:     strings.EqualFold(consumer.word("auto.offset.reset"), "latest"),
	}
	if strings.EqualFold(consumer.word("isolation.level"), "read_committed") {
		f.Data.Isolation = kafka.ReadCommitted
	}
	if codec := strings.ToLower(producer.word("compression.type")); slices.Contains([]string{"none", "gzip", "snappy", "lz4", "zstd"}, codec) {
		f.Data.Compression = Opt[string]{Value: codec, Set: true}
	}
}

// clients builds the settings of every role, and notes the tuning that each got.
func (b *builder) clients(f *Flow, conn, worker view, r *reader) {
	roles := []struct {
		name string
		kind Roles
		view view
		to   *Client
	}{
		{"source.consumer", RoleConsumer, connectorClient(conn, "source", "consumer"), &f.Clients.SourceConsumer},
		{"source.admin", RoleAdmin, connectorClient(conn, "source", "admin"), &f.Clients.SourceAdmin},
		{"source.producer", RoleProducer, connectorClient(conn, "source", "producer"), &f.Clients.SourceProducer},
		{"target.consumer", RoleConsumer, connectorClient(conn, "target", "consumer"), &f.Clients.TargetConsumer},
		{"target.admin", RoleAdmin, connectorClient(conn, "target", "admin"), &f.Clients.TargetAdmin},
		{"target.producer", RoleProducer, connectorClient(conn, "target", "producer"), &f.Clients.TargetProducer},
		{"record.producer", RoleProducer, recordProducer(worker, conn), &f.Clients.RecordProducer},
		{"worker", everyRole, workerClient(worker), &f.Clients.Worker},
	}
	for _, role := range roles {
		owner := Origin{}
		if val, ok := role.view["security.protocol"]; ok {
			owner = val.Origin
		}
		*role.to = b.client(role.view, owner)
		for key, val := range role.view {
			k := b.keys.clients[key]
			applied := k != nil && k.Effect == Honoured && k.Roles&role.kind != 0 && (role.name != "worker" || !val.Origin.IsDefault())
			if isConnectionKey(key) || applied {
				r.note(role.name+"."+key, val.shown(b.keys.secret(key)), val.Origin)
			}
		}
	}
}

func (b *builder) client(v view, owner Origin) Client {
	return Client{
		Connection:     b.connection(v, owner),
		ClientID:       v.word("client.id"),
		Rack:           v.word("client.rack"),
		RequestTimeout: v.millis("request.timeout.ms"),
		MetadataMaxAge: v.millis("metadata.max.age.ms"),
		SetupTimeout:   v.millis("socket.connection.setup.timeout.ms"),
	}
}
