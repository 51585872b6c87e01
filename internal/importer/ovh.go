package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// isOVH says whether a document is one of OVHcloud's that concern MirrorMaker.
func isOVH(n *node) bool {
	if n.kind == list {
		return len(n.items) > 0 && isOVH(n.items[0])
	}
	for _, name := range []string{"sourceIntegration", "targetIntegration", "sourceServiceId", "destinationServiceId"} {
		if n.get(name) != nil {
			return true
		}
	}
	for _, name := range []string{"replications", "integrations"} {
		if v := n.get(name); v != nil && isOVH(v) {
			return true
		}
	}
	return n.word("engine") == "kafka" || n.word("engine") == "kafkaMirrorMaker"
}

// ovhReader collects what the documents of all files say.
type ovhReader struct {
	*draft
	services     map[string]*reading // Kafka services by id
	integrations map[string]*reading // by id
	aliases      map[string]string   // by integration id
}

// readOVH reads replications. Integrations and Kafka services, if they are given
// too, tell which clusters they are between.
func readOVH(d *draft, inputs []input) {
	r := &ovhReader{draft: d, services: map[string]*reading{}, integrations: map[string]*reading{}, aliases: map[string]string{}}
	var replications []*reading
	for _, in := range inputs {
		for _, doc := range in.docs {
			replications = append(replications, r.document(doc, origin{file: in.Name})...)
		}
	}
	for _, o := range replications {
		r.replication(o)
	}
	for _, known := range []map[string]*reading{r.integrations, r.services} {
		for _, id := range slices.Sorted(maps.Keys(known)) {
			if o := known[id]; len(o.taken) == 0 {
				d.drop(o.at, "no replication uses it")
			}
		}
	}
	d.add("emit.heartbeats.enabled", "false", "OVHcloud writes heartbeats only for replications that ask for them; heliograph would for every pair", origin{})
}

func (r *ovhReader) document(n *node, at origin) []*reading {
	var found []*reading
	if n.kind == list {
		for i, place := range r.places(n, at) {
			found = append(found, r.document(n.items[i], place)...)
		}
		return found
	}
	at.line = n.line
	o := r.open(n, at)
	switch {
	case n.get("sourceIntegration") != nil, n.get("targetIntegration") != nil:
		return []*reading{o}
	case n.get("sourceServiceId") != nil, n.get("destinationServiceId") != nil:
		r.integrations[n.word("id")] = o
		return nil
	case n.word("engine") == "kafka":
		r.services[n.word("id")] = o
		return nil
	case n.word("engine") == "kafkaMirrorMaker":
		r.drop(at, "the MirrorMaker service itself: heliograph takes its place")
		return nil
	}
	for _, name := range []string{"replications", "integrations", "services"} {
		if v := o.get(name); v != nil {
			found = append(found, r.document(v, o.place(name))...)
		}
	}
	o.rest()
	return found
}

// alias is the cluster behind an integration.
func (r *ovhReader) alias(id string, at origin) string {
	if alias, ok := r.aliases[id]; ok {
		return alias
	}
	alias := id
	if o := r.integrations[id]; o != nil {
		if service := o.used("sourceServiceId", "clusters"); service != "" {
			alias = r.service(service, at)
		}
		o.idle("it tells which integration this is", "id", "type", "destinationServiceId", "status", "parameters")
		o.rest()
	} else {
		r.missing(at, "the integration "+oneLine(id)+" is not among the files: "+nameless)
	}
	r.aliases[id] = alias
	r.cluster(alias)
	return alias
}

// nameless tells what to do where documents do not tell an alias.
const nameless = "replace the id in the document by the alias that the copies are prefixed with on the target (xxxxxxxxx.kafka-xxxxxxxx), and add bootstrap.servers"

var ovhDomain = regexp.MustCompile(`^(kafka-[0-9a-z]+)-([0-9a-z]+)\.`)

// service reads a Kafka service and finds the alias that OVHcloud gives it.
func (r *ovhReader) service(id string, at origin) string {
	o := r.services[id]
	if o == nil {
		r.missing(at, "the Kafka service "+oneLine(id)+" is not among the files: "+nameless)
		return id
	}
	items, places := o.list("endpoints")
	alias := id
	for i, item := range items {
		e := r.open(item, places[i])
		if component := e.node.word("component"); component != "kafka" {
			r.drop(e.at, fmt.Sprintf("of %s, which replication does not use", oneLine(component)))
			continue
		}
		domain, port := e.used("domain", "bootstrap.servers"), e.used("port", "bootstrap.servers")
		if m := ovhDomain.FindStringSubmatch(domain); m != nil {
			alias = m[2] + "." + m[1]
			r.remark(e.place("domain"), "the alias "+alias+" is made from the domain; compare it with the prefix of the copies on the target")
		} else {
			r.missing(e.place("domain"), nameless)
		}
		r.keep(setting{key: alias + ".bootstrap.servers", value: domain + ":" + port, from: e.place("domain")})
		if ssl, _ := e.text("ssl"); strings.EqualFold(ssl, "true") {
			r.keep(setting{key: alias + ".security.protocol", value: "SSL", from: e.place("ssl"), verdict: Changed})
			r.missing(e.place("ssl"), "OVHcloud's Kafka asks for a client certificate: download the user's certificate and key and the service's CA, and set ssl.keystore.* and ssl.truststore.* of "+alias)
		}
		e.idle("it is told by the others", "component", "scheme", "sslMode", "uri", "path")
		e.rest()
		break
	}
	if len(items) == 0 {
		r.missing(o.at, "the service has no endpoints: "+nameless)
	}
	o.others("about OVHcloud's service, not about what is replicated")
	return alias
}

func (r *ovhReader) replication(o *reading) {
	from, _ := o.text("sourceIntegration")
	to, _ := o.text("targetIntegration")
	if from == "" || to == "" {
		r.missing(o.at, "sourceIntegration and targetIntegration must be there")
		return
	}
	source := r.alias(from, o.place("sourceIntegration"))
	target := r.alias(to, o.place("targetIntegration"))
	r.changed(o.place("sourceIntegration"), "cluster "+source, "")
	r.changed(o.place("targetIntegration"), "cluster "+target, "")
	flow := source + "->" + target
	for _, f := range []rename{
		{"enabled", "enabled"},
		{"topics", "topics"},
		{"topicExcludeList", "topics.exclude"},
		{"syncGroupOffsets", "sync.group.offsets.enabled"},
		{"syncInterval", "sync.group.offsets.interval.seconds"},
		{"emitHeartbeats", "emit.heartbeats.enabled"},
		{"replicationPolicyClass", "replication.policy.class"},
	} {
		if v := o.get(f.field); v != nil && v.kind == list && len(v.items) == 0 {
			r.drop(o.place(f.field), "an empty list is OVHcloud's word for its default, which is MirrorMaker's")
			continue
		}
		o.field(f.field, flow+"."+f.key)
	}
	if r.find(flow+".enabled") == nil {
		r.missing(o.at, "enabled must be there; the flow is not enabled without it")
	}
	o.idle("it tells which replication this is", "id")
	o.rest()
}
