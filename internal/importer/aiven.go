package importer

import (
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// isAiven says whether a document is one of Aiven's that concern MirrorMaker.
func isAiven(n *node) bool {
	if n.kind == list {
		return len(n.items) > 0 && isAiven(n.items[0])
	}
	for _, name := range []string{"replication_flows", "replication_flow", "source_cluster", "service_integrations", "service_integration", "service_integration_endpoints", "service_integration_endpoint", "integration_type", "endpoint_type"} {
		if n.get(name) != nil {
			return true
		}
	}
	return n.path("service", "service_type") != nil
}

// aivenReader collects what the documents of all files say.
type aivenReader struct {
	*draft
	endpoints map[string]*reading // by id and by name
	used      []*reading
}

// readAiven reads replication flows, and what else of Aiven's answers is given:
// integrations with an external_kafka endpoint tell where the clusters are.
func readAiven(d *draft, inputs []input) {
	r := &aivenReader{draft: d, endpoints: map[string]*reading{}}
	var flows, integrations []*reading
	for _, in := range inputs {
		for _, doc := range in.docs {
			f, i := r.document(doc, origin{file: in.Name})
			flows, integrations = append(flows, f...), append(integrations, i...)
		}
	}
	for _, f := range flows {
		r.flow(f)
	}
	for _, i := range integrations {
		r.integration(i)
	}
	for _, id := range slices.Sorted(maps.Keys(r.endpoints)) {
		e := r.endpoints[id]
		if !slices.Contains(r.used, e) {
			r.used = append(r.used, e)
			name, _ := e.text("endpoint_name")
			r.endpoint(e, name)
		}
	}
	for _, alias := range d.clusters {
		if d.find(alias+".bootstrap.servers") == nil {
			d.remark(origin{}, "where "+oneLine(alias)+" is does not stand in a replication flow: import the integration with its external_kafka endpoint together with it, or fill it in")
		}
	}
	d.add("emit.heartbeats.enabled", "false", "Aiven writes heartbeats only for flows that ask for them; heliograph would for every pair", origin{})
}

// document sorts what is in a file: flows, integrations and endpoints, alone,
// in lists and within a service.
func (r *aivenReader) document(n *node, at origin) (flows, integrations []*reading) {
	if n.kind == list {
		for i, place := range r.places(n, at) {
			f, in := r.document(n.items[i], place)
			flows, integrations = append(flows, f...), append(integrations, in...)
		}
		return flows, integrations
	}
	at.line = n.line
	o := r.open(n, at)
	switch {
	case n.get("source_cluster") != nil:
		return []*reading{o}, nil
	case n.get("integration_type") != nil:
		return nil, []*reading{o}
	case n.get("endpoint_type") != nil:
		for _, name := range []string{n.word("endpoint_id"), n.word("endpoint_name")} {
			if name != "" {
				r.endpoints[name] = o
			}
		}
		return nil, nil
	}
	for _, name := range []string{"replication_flows", "replication_flow", "service_integrations", "service_integration", "service_integration_endpoints", "service_integration_endpoint"} {
		if v := o.get(name); v != nil {
			f, in := r.document(v, o.place(name))
			flows, integrations = append(flows, f...), append(integrations, in...)
		}
	}
	if v := o.get("service"); v != nil {
		f, in := r.service(r.open(v, o.place("service")))
		flows, integrations = append(flows, f...), append(integrations, in...)
	}
	o.idle("Aiven's own", "message", "errors")
	o.rest()
	return flows, integrations
}

// service reads user_config and the integrations of a MirrorMaker service; the
// rest of the answer is about Aiven's machines.
func (r *aivenReader) service(o *reading) (flows, integrations []*reading) {
	if v := o.get("service_integrations"); v != nil {
		flows, integrations = r.document(v, o.place("service_integrations"))
	}
	user := o.open("user_config")
	r.serviceConfig(user.open("kafka_mirrormaker"))
	user.idle("Aiven's own: network, machines and logs of the service", "ip_filter", "ip_filter_object", "ip_filter_string", "service_log", "static_ips", "additional_backup_regions", "kafka_mirrormaker_version")
	user.idle("to read from the nearest replica, write <source>.consumer.client.rack", "preferred_zones")
	user.idle("heliograph asks the token service that the file names and no other", "sasl_oauthbearer_allowed_urls")
	user.rest()
	o.others("about Aiven's service, not about what is replicated")
	return flows, integrations
}

// rename says what a field is called in MirrorMaker's words.
type rename struct{ field, key string }

// serviceFields hold for all flows.
var serviceFields = []rename{
	{"admin_timeout_ms", "admin.timeout.ms"},
	{"emit_checkpoints_enabled", "emit.checkpoints.enabled"},
	{"emit_checkpoints_interval_seconds", "emit.checkpoints.interval.seconds"},
	{"groups", "groups"},
	{"groups_exclude", "groups.exclude"},
	{"offset_lag_max", "offset.lag.max"},
	{"refresh_groups_enabled", "refresh.groups.enabled"},
	{"refresh_groups_interval_seconds", "refresh.groups.interval.seconds"},
	{"refresh_topics_enabled", "refresh.topics.enabled"},
	{"refresh_topics_interval_seconds", "refresh.topics.interval.seconds"},
	{"sync_group_offsets_enabled", "sync.group.offsets.enabled"},
	{"sync_group_offsets_interval_seconds", "sync.group.offsets.interval.seconds"},
	{"sync_topic_configs_enabled", "sync.topic.configs.enabled"},
}

func (r *aivenReader) serviceConfig(o *reading) {
	for _, f := range serviceFields {
		o.field(f.field, f.key)
	}
	o.idle("all partitions are copied in parallel without a number of tasks to choose", "tasks_max_per_cpu")
	o.rest()
}

var flowFields = []rename{
	{"enabled", "enabled"},
	{"enable", "enabled"}, // Terraform's name
	{"topics", "topics"},
	{"topics_exclude", "topics.exclude"},
	{"topics.exclude", "topics.exclude"},
	{"topics.blacklist", "topics.exclude"},
	{"topics_blacklist", "topics.exclude"},
	{"replication_policy_class", "replication.policy.class"},
	{"sync_group_offsets_enabled", "sync.group.offsets.enabled"},
	{"sync_group_offsets_interval_seconds", "sync.group.offsets.interval.seconds"},
	{"emit_heartbeats_enabled", "emit.heartbeats.enabled"},
	{"offset_syncs_topic_location", "offset-syncs.topic.location"},
	{"replication_factor", "replication.factor"},
	{"offset_lag_max", "offset.lag.max"},
}

func (r *aivenReader) flow(o *reading) {
	source, target := o.used("source_cluster", "clusters"), o.used("target_cluster", "clusters")
	if source == "" || target == "" {
		r.missing(o.at, "source_cluster and target_cluster must be there")
		return
	}
	r.cluster(source)
	r.cluster(target)
	flow := source + "->" + target
	for _, f := range flowFields {
		o.field(f.field, flow+"."+f.key)
	}
	if r.find(flow+".enabled") == nil {
		r.missing(o.at, "enabled must be there; the flow is not enabled without it")
	}
	o.field("emit_backward_heartbeats_enabled", target+"->"+source+".emit.heartbeats.enabled")
	if text, ok := o.text("config_properties_exclude"); ok {
		const always = "unclean.leader.election.enable"
		s := setting{key: flow + ".config.properties.exclude", value: text, from: o.place("config_properties_exclude"), verdict: Kept}
		if items := config.ReadList(text); !slices.Contains(items, always) {
			s.value, s.verdict = strings.Join(append(items, always), ","), Changed
			s.because("Aiven always adds " + always)
		}
		r.keep(s)
	}
	if text, ok := o.text("exactly_once_delivery_enabled"); ok {
		if strings.EqualFold(text, "true") {
			at := o.place("exactly_once_delivery_enabled")
			r.keep(setting{key: target + ".exactly.once.source.support", value: "enabled", from: at, verdict: Changed, why: []string{"it is a setting of the target: all flows into " + target + " share it"}})
			r.keep(setting{key: flow + ".source.consumer.isolation.level", value: "read_committed", from: at, verdict: Changed, why: []string{"aborted records are left out"}})
		} else {
			r.drop(o.place("exactly_once_delivery_enabled"), "false is the default")
		}
	}
	o.idle("to read from the nearest replica, write "+source+".consumer.client.rack with the rack that heliograph runs in", "follower_fetching_enabled")
	o.idle("Aiven's own account of what runs", "replication_progress", "flow_id", "state")
	o.rest()
}

// integration reads which alias belongs to which endpoint, and the tuning of its clients.
func (r *aivenReader) integration(o *reading) {
	if kind := o.node.word("integration_type"); kind != "kafka_mirrormaker" {
		o.taken["integration_type"] = true
		r.drop(o.place("integration_type"), oneLine(kind)+" does not concern MirrorMaker")
		return
	}
	o.get("integration_type")
	user := o.open("user_config")
	alias := user.used("cluster_alias", "clusters")
	if alias == "" {
		r.missing(o.at, "user_config.cluster_alias must be there: it says which cluster this is")
		return
	}
	r.cluster(alias)
	tuning := user.open("kafka_mirrormaker")
	if tuning.node != nil {
		for _, f := range tuning.node.fields {
			role, name, ok := strings.Cut(f.name, "_")
			if ok && (role == "consumer" || role == "producer") {
				tuning.field(f.name, alias+"."+role+"."+strings.ReplaceAll(name, "_", "."))
			}
		}
	}
	tuning.rest()
	user.rest()
	for _, id := range []string{o.node.word("source_endpoint_id"), o.node.word("source_endpoint"), o.node.word("dest_endpoint_id")} {
		if e := r.endpoints[id]; id != "" && e != nil && !slices.Contains(r.used, e) {
			r.used = append(r.used, e)
			r.endpoint(e, alias)
		}
	}
	o.idle("it tells which of Aiven's services or endpoints the cluster is; heliograph needs its brokers", "source_service", "source_project", "source_endpoint_id", "source_endpoint", "source_service_type", "source_endpoint_name",
		"dest_service", "dest_project", "dest_endpoint_id", "dest_endpoint", "dest_service_type", "dest_endpoint_name")
	o.idle("Aiven's own", "service_integration_id", "integration_id", "active", "enabled", "description", "integration_status")
	o.rest()
}

// endpoint reads an external Kafka.
func (r *aivenReader) endpoint(o *reading, alias string) {
	o.idle("it tells which endpoint this is", "endpoint_id", "endpoint_name", "endpoint_type", "endpoint_config", "service_integration_id")
	user := o.open("user_config")
	if kafka := user.get("external_kafka"); kafka != nil {
		user = r.open(kafka, user.place("external_kafka"))
	}
	if alias == "" || user.node == nil {
		r.missing(o.at, "endpoint_name and user_config must be there")
		return
	}
	r.cluster(alias)
	for _, f := range []rename{
		{"bootstrap_servers", "bootstrap.servers"},
		{"security_protocol", "security.protocol"},
		{"sasl_mechanism", "sasl.mechanism"},
		{"ssl_ca_cert", "ssl.truststore.certificates"},
		{"ssl_client_cert", "ssl.keystore.certificate.chain"},
		{"ssl_client_key", "ssl.keystore.key"},
		{"ssl_endpoint_identification_algorithm", "ssl.endpoint.identification.algorithm"},
	} {
		user.field(f.field, alias+"."+f.key)
	}
	for _, s := range []string{"truststore.certificates", "keystore.certificate.chain"} {
		if from := r.find(alias + ".ssl." + s); from != nil {
			store, _, _ := strings.Cut(s, ".")
			r.add(alias+".ssl."+store+".type", "PEM", "certificates are given as PEM text", from.from)
		}
	}
	name, hasName := user.text("sasl_plain_username")
	password, hasPassword := user.text("sasl_plain_password")
	if hasName || hasPassword {
		class := modules + "plain.PlainLoginModule"
		if m := r.find(alias + ".sasl.mechanism"); m != nil && strings.HasPrefix(m.value, "SCRAM") {
			class = modules + "scram.ScramLoginModule"
		}
		r.add(alias+".sasl.mechanism", "PLAIN", "Aiven's default", user.at)
		r.keep(setting{
			key: alias + ".sasl.jaas.config", from: user.place("sasl_plain_password"), verdict: Changed,
			value: jaas(config.LoginModule{Class: class, Flag: "required", Options: map[string]string{"username": name, "password": password}}),
		})
		r.changed(user.place("sasl_plain_username"), alias+".sasl.jaas.config", "")
	}
	user.rest()
	o.rest()
}
