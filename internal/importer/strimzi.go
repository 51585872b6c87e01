package importer

import (
	"maps"
	"slices"
	"strings"
)

// isResource says whether a document is a Kubernetes resource that concerns MirrorMaker.
func isResource(n *node) bool {
	if n.word("kind") == "List" {
		items := n.get("items")
		return items != nil && slices.ContainsFunc(items.items, isResource)
	}
	return strings.HasPrefix(n.word("apiVersion"), "kafka.strimzi.io/") || n.word("kind") == "KafkaMirrorMaker2"
}

// strimziReader collects what the resources of all files say.
type strimziReader struct {
	*draft
	mount      string
	connectors []connector
	workers    []strimziWorker
	mounted    []string // secrets that must be mounted
}

type strimziWorker struct {
	target   string
	settings []setting
}

func readStrimzi(d *draft, inputs []input, mount string) {
	r := &strimziReader{draft: d, mount: mount}
	for _, in := range inputs {
		for _, doc := range in.docs {
			r.resource(doc, origin{file: in.Name})
		}
	}
	d.joinConnectors(r.connectors)
	for _, w := range r.workers {
		d.worker(w.target, w.settings)
	}
	r.kubernetesReferences()
	if len(r.mounted) > 0 {
		name := d.provider("dir")
		for i := range d.settings {
			d.settings[i].value = strings.ReplaceAll(d.settings[i].value, mountMark, "${"+name+":")
		}
		d.declareProvider(name, "dir")
	}
	for _, secret := range r.mounted {
		d.missing(origin{path: "Secret " + secret}, "mount it at "+mount+"/"+secret+", each of its keys as a file, as Kubernetes does; a password must not end in a line end")
	}
}

// mountMark stands for the name of the provider until that is chosen.
const mountMark = "\x00{mounted:"

// reference is a value of a Kubernetes secret that will be mounted.
func (r *strimziReader) reference(secret, key string) string {
	if !slices.Contains(r.mounted, secret) {
		r.mounted = append(r.mounted, secret)
	}
	return mountMark + r.mount + "/" + secret + ":" + key + "}"
}

func (r *strimziReader) resource(n *node, at origin) {
	at.line = n.line
	kind, name := n.word("kind"), ""
	if meta := n.get("metadata"); meta != nil {
		name = meta.word("name")
	}
	switch kind {
	case "List":
		if items := n.get("items"); items != nil {
			for _, item := range items.items {
				r.resource(item, at)
			}
		}
		return
	case "KafkaMirrorMaker2":
		r.mirrorMaker(r.open(n, at))
		return
	case "KafkaConnector":
		if strings.Contains(n.path("spec").word("class"), ".mirror.") {
			r.kafkaConnector(r.open(n, at))
			return
		}
	}
	what := kind
	if name != "" {
		what += " " + name
	}
	if what == "" {
		what = "a document without a kind"
	}
	r.drop(at.sub(oneLine(what), n.line), "not a KafkaMirrorMaker2; it is left alone")
}

// envelope names what stands around the spec of every resource.
func (r *strimziReader) envelope(o *reading) *reading {
	o.taken["apiVersion"], o.taken["kind"] = true, true
	o.becomes("kind", "clusters and flows")
	o.idle("the operator's own account of what runs", "status")
	meta := o.open("metadata")
	meta.idle("nothing here is named after the resource", "name", "namespace")
	meta.idle("Kubernetes' own", "labels", "creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "ownerReferences", "finalizers", "selfLink")
	meta.idle("heliograph knows no annotations; restarts and offsets are asked for with its own verbs", "annotations")
	meta.rest()
	spec := o.open("spec")
	o.rest()
	return spec
}

func (r *strimziReader) mirrorMaker(o *reading) {
	spec := r.envelope(o)
	if text, ok := spec.text("version"); ok {
		if major, _, _ := strings.Cut(text, "."); slices.Contains([]string{"2", "3"}, major) {
			r.keep(setting{key: "heliograph.compatibility", value: "3.9", from: spec.place("version"), verdict: Changed, why: []string{"up to Kafka 3.9 other topics are internal and left out by default"}})
		} else {
			r.drop(spec.place("version"), "heliograph does as Kafka 4 does")
		}
	}
	spec.idle("heliograph is its own image", "image")
	spec.idle("run as many heliograph processes with this file as you want replicas; they share the work", "replicas")
	spec.idle("belongs into the pod that runs heliograph", "resources", "livenessProbe", "readinessProbe", "template", "clientRackInitImage")
	spec.idle("heliograph is no JVM", "jvmOptions", "jmxOptions")
	spec.idle("heliograph has its own log, see --log-level", "logging")
	spec.idle("metrics are served at /metrics without an exporter", "metricsConfig", "metrics")
	spec.idle("heliograph writes no traces", "tracing")
	spec.idle("mount volumes and set variables in the pod that runs heliograph", "externalConfiguration")
	spec.idle("to read from the nearest replica, write <source>.consumer.client.rack with the rack that heliograph runs in", "rack")
	clusters := map[string]strimziCluster{}
	items, places := spec.list("clusters")
	for i, item := range items {
		c := r.cluster(r.open(item, places[i]))
		clusters[c.alias] = c
	}
	target := ""
	if connect, ok := spec.text("connectCluster"); ok {
		target = connect
		spec.becomes("connectCluster", "the target of the flows")
	}
	if n := spec.get("target"); n != nil {
		c := r.cluster(r.open(n, spec.place("target")))
		target, clusters[c.alias] = c.alias, c
	}
	if c, ok := clusters[target]; ok {
		r.workers = append(r.workers, strimziWorker{target, c.config})
	}
	items, places = spec.list("mirrors")
	for i, item := range items {
		r.mirror(r.open(item, places[i]), target, clusters)
	}
	for _, alias := range slices.Sorted(maps.Keys(clusters)) {
		c := clusters[alias]
		if alias != target && !c.source {
			for _, s := range c.config {
				r.drop(s.from, "no mirror copies from "+alias)
			}
		}
	}
	spec.rest()
}

func (r *strimziReader) mirror(m *reading, target string, clusters map[string]strimziCluster) {
	source := m.used("sourceCluster", "the flow's source")
	if n := m.get("source"); n != nil {
		c := r.cluster(r.open(n, m.place("source")))
		source, clusters[c.alias] = c.alias, c
	}
	if to, ok := m.text("targetCluster"); ok {
		m.becomes("targetCluster", "the flow's target")
		if target == "" {
			target = to
		} else if to != target {
			m.d.missing(m.place("targetCluster"), "it is not connectCluster, which is where Strimzi's connectors write")
		}
	}
	var shared []setting
	for _, p := range []struct{ field, key string }{
		{"topicsPattern", "topics"},
		{"topicsExcludePattern", "topics.exclude"},
		{"topicsBlacklistPattern", "topics.blacklist"},
		{"groupsPattern", "groups"},
		{"groupsExcludePattern", "groups.exclude"},
		{"groupsBlacklistPattern", "groups.blacklist"},
	} {
		if text, ok := m.text(p.field); ok {
			shared = append(shared, setting{key: p.key, value: text, from: m.place(p.field), verdict: Kept})
		}
	}
	base := clusterSettings("source.cluster.", clusters[source], true)
	base = append(base, clusterSettings("target.cluster.", clusters[target], false)...)
	if c, ok := clusters[source]; ok {
		c.source = true
		clusters[source] = c
	}
	base = append([]setting{{key: "source.cluster.alias", value: source}, {key: "target.cluster.alias", value: target}}, base...)
	found := false
	for _, part := range []struct{ field, class string }{
		{"sourceConnector", sourceConnector}, {"checkpointConnector", checkpointConnector}, {"heartbeatConnector", heartbeatConnector},
	} {
		n := m.get(part.field)
		if n == nil {
			continue
		}
		found = true
		c := connector{class: part.class, at: m.place(part.field)}
		c.config = r.connectorSpec(r.open(n, m.place(part.field)), &c)
		for _, s := range shared { // patterns beat the same key of config
			if !slices.Contains(readers(s.key), part.class) {
				continue
			}
			c.config = slices.DeleteFunc(c.config, func(old setting) bool {
				if old.key == s.key {
					r.drop(old.from, s.from.path+" beats it")
				}
				return old.key == s.key
			})
			c.config = append(c.config, s)
		}
		c.config = append(slices.Clone(base), c.config...)
		r.connectors = append(r.connectors, c)
	}
	if !found {
		m.d.missing(m.at, "no connector is asked for, so Strimzi runs none and nothing is copied")
		for _, s := range shared {
			r.drop(s.from, "no connector reads it")
		}
	}
	m.rest()
}

// clusterSettings are the settings of a cluster as a connector's. Those of its
// config go with the source; the target's are the worker's.
func clusterSettings(prefix string, c strimziCluster, withConfig bool) []setting {
	settings := c.settings
	if withConfig {
		settings = append(slices.Clone(settings), c.config...)
	}
	out := make([]setting, len(settings))
	for i, s := range settings {
		s.key = prefix + s.key
		out[i] = s
	}
	return out
}

// connectorSpec reads what both KafkaMirrorMaker2 and KafkaConnector say of a connector.
func (r *strimziReader) connectorSpec(o *reading, c *connector) []setting {
	var out []setting
	if text, ok := o.text("tasksMax"); ok {
		out = append(out, setting{key: "tasks.max", value: text, from: o.place("tasksMax"), verdict: Kept})
	}
	if text, ok := o.text("pause"); ok {
		if strings.EqualFold(text, "true") {
			c.off = "it is paused"
		}
		o.becomes("pause", "enabled")
	}
	if text, ok := o.text("state"); ok {
		c.off = offState(text)
		o.becomes("state", "enabled")
	}
	o.idle("flows that break are started again", "autoRestart")
	o.idle("offsets are not set by a file", "listOffsets", "alterOffsets")
	o.idle("heliograph has one release of everything", "version")
	out = append(out, r.flat(o.get("config"), o.place("config"))...)
	o.rest()
	return out
}

// kafkaConnector reads a connector that is a resource of its own.
func (r *strimziReader) kafkaConnector(o *reading) {
	spec := r.envelope(o)
	class, _ := spec.text("class")
	c := connector{class: simpleClass(class), at: spec.at}
	spec.becomes("class", "a flow")
	c.config = r.connectorSpec(spec, &c)
	if !slices.Contains(connectorOrder, c.class) {
		r.drop(spec.place("class"), "not one of MirrorMaker's connectors")
		return
	}
	r.connectors = append(r.connectors, c)
}

// kubernetesReferences turns ${secrets:namespace/name:key} of Strimzi's own
// config providers into references to mounted files.
func (r *strimziReader) kubernetesReferences() {
	var names []string
	for _, s := range r.settings {
		name, ok := strings.CutPrefix(s.key, "config.providers.")
		if name, isClass := strings.CutSuffix(name, ".class"); ok && isClass && strings.HasPrefix(simpleClass(s.value), "Kubernetes") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		r.settings = slices.DeleteFunc(r.settings, func(s setting) bool {
			gone := strings.HasPrefix(s.key, "config.providers."+name+".")
			if gone {
				r.changed(s.from, "mounted secrets", "heliograph reads files, not Kubernetes' API")
			}
			return gone
		})
		for i := range r.settings {
			s := &r.settings[i]
			if s.key == "config.providers" {
				s.items = slices.DeleteFunc(strings.Split(s.value, ","), func(item string) bool { return trim(item) == name })
				s.value, s.verdict = strings.Join(s.items, ","), Changed
				s.because(name + " reads Kubernetes' API, which heliograph does not")
				continue
			}
			r.mountReferences(s, name)
		}
	}
	r.settings = slices.DeleteFunc(r.settings, func(s setting) bool {
		gone := s.key == "config.providers" && trim(s.value) == ""
		if gone {
			r.notes = append(r.notes, s.dropped())
		}
		return gone
	})
}

func (r *strimziReader) mountReferences(s *setting, provider string) {
	var b strings.Builder
	rest := s.value
	for {
		before, after, ok := strings.Cut(rest, "${"+provider+":")
		b.WriteString(before)
		inside, behind, closed := strings.Cut(after, "}")
		path, key, isKey := strings.Cut(inside, ":")
		if !ok || !closed || !isKey {
			if ok {
				b.WriteString("${" + provider + ":" + after)
			}
			break
		}
		b.WriteString(r.reference(path[strings.LastIndexByte(path, '/')+1:], key))
		s.verdict = Changed
		s.because("the secret is read from a mounted file")
		rest = behind
	}
	if b.Len() > 0 {
		s.value = b.String()
	}
}
