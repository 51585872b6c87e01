package ovh

import (
	"encoding/json"
	"slices"

	"heliograph/internal/api/jsonobject"
	"heliograph/internal/control"
)

// integration is cloud.project.database.service.Integration.
type integration struct {
	ID                   string            `json:"id"`
	SourceServiceID      string            `json:"sourceServiceId"`
	DestinationServiceID string            `json:"destinationServiceId"`
	Type                 string            `json:"type"`
	Parameters           map[string]string `json:"parameters"`
	Status               status            `json:"status"`
}

// integrationType is the only type that there is here.
const integrationType = "kafkaMirrorMaker"

// integrationDocument is what an integration is here: a cluster under a service.
type integrationDocument struct {
	Project string `json:"project"`
	Service string `json:"service"`
	// Alias is the cluster's, and the prefix of what is copied from it.
	Alias string `json:"alias"`
	// Replications use it; while there is one it cannot be deleted. They change the
	// document's revision with themselves, so that nobody overlooks one.
	Replications []string `json:"replications,omitempty"`
}

// link is an integration as it is stored.
type link struct {
	id       string
	doc      integrationDocument
	revision control.Revision
}

func decodeLink(d control.Document) (link, error) {
	l := link{id: d.ID, revision: d.Revision}
	return l, json.Unmarshal(d.Value, &l.doc)
}

func (l *link) answer() integration {
	return integration{
		ID: l.id, SourceServiceID: kafkaID(l.doc.Alias), DestinationServiceID: l.doc.Service,
		Type: integrationType, Parameters: map[string]string{}, Status: statusReady,
	}
}

// using is the change that adds a replication to those that use it, or takes it away.
func (l *link) using(replication string, uses bool) control.Change {
	doc := l.doc
	doc.Replications = slices.DeleteFunc(slices.Clone(doc.Replications), func(id string) bool { return id == replication })
	if uses {
		doc.Replications = append(doc.Replications, replication)
	}
	return control.PutDocument{Kind: kindIntegration, ID: l.id, Value: encode(doc), If: control.At(l.revision)}
}

// capabilityOfIntegration is cloud.project.database.capabilities.Integration.
type capabilityOfIntegration struct {
	SourceEngine      string     `json:"sourceEngine"`
	DestinationEngine string     `json:"destinationEngine"`
	Type              string     `json:"type"`
	Parameters        []struct{} `json:"parameters"`
}

func (h *Handler) integrationCapabilities(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		if _, err := h.kafkaOf(c); err != nil {
			return nil, err
		}
	}
	return []capabilityOfIntegration{{
		SourceEngine: "kafka", DestinationEngine: "kafkaMirrorMaker", Type: integrationType, Parameters: []struct{}{},
	}}, nil
}

// links are the project's integrations.
func (h *Handler) links(c *call) []link {
	var out []link
	for _, d := range h.o.Control.Documents(c.Context(), kindIntegration) {
		if l, err := decodeLink(d); err == nil && l.doc.Project == c.project {
			out = append(out, l)
		}
	}
	return out
}

// linkByID is an integration of a MirrorMaker service.
func (h *Handler) linkByID(c *call, service, id string) (link, error) {
	d, err := h.o.Control.Document(c.Context(), kindIntegration, id)
	if err == nil {
		l, err := decodeLink(d)
		if err != nil {
			return link{}, err
		}
		if l.doc.Project == c.project && l.doc.Service == service {
			return l, nil
		}
	} else if control.KindOf(err) != control.NotFound {
		return link{}, err
	}
	return link{}, notFound(classNotFound, "there is no integration %s on service %s", id, service)
}

func (h *Handler) listIntegrations(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, l := range h.links(c) {
		if l.doc.Service == s.id {
			ids = append(ids, l.id)
		}
	}
	return ids, nil
}

func (h *Handler) getIntegration(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	l, err := h.linkByID(c, s.id, c.PathValue("integrationId"))
	if err != nil {
		return nil, err
	}
	return l.answer(), nil
}

func (h *Handler) createIntegration(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	source, destination, err := integrationBody(c)
	if err != nil {
		return nil, err
	}
	if destination != s.id {
		return nil, badRequest("[destinationServiceId] must be %s, the MirrorMaker service of the path; the Kafka service is the source in every integration", s.id)
	}
	k, err := h.kafkaByID(c, source)
	if err != nil {
		return nil, err
	}
	return h.integrate(c, s, k)
}

// integrationBody reads an integration to be made.
func integrationBody(c *call) (source, destination string, err error) {
	b := c.body()
	source, destination = b.uuid("sourceServiceId"), b.uuid("destinationServiceId")
	b.Enum("type", integrationType)
	b.Text("id")
	b.Text("status")
	if parameters, _ := jsonobject.Read[map[string]string](b.Object, "parameters", "map[string]string"); len(parameters) > 0 {
		b.Fail("parameters", "this integration takes none")
	}
	return source, destination, b.Done()
}

// integrate links a cluster to a service, once.
func (h *Handler) integrate(c *call, s mirrorService, k kafkaService) (any, error) {
	// The id is made from what is linked, so that two requests at once make one.
	l := link{id: idOf("integration", s.id, k.alias), doc: integrationDocument{Project: c.project, Service: s.id, Alias: k.alias}}
	changes := []control.Change{control.PutDocument{Kind: kindIntegration, ID: l.id, Value: encode(l.doc), If: control.Absent}}
	s.doc.Integrations = append(slices.Clone(s.doc.Integrations), l.id)
	_, err := h.o.Control.Commit(c.Context(), append(changes, s.put()...)...)
	if control.KindOf(err) == control.Conflict {
		return nil, conflict("service %s has an integration with Kafka service %s: %s", s.id, k.id, l.id)
	}
	if err != nil {
		return nil, err
	}
	return l.answer(), nil
}

func (h *Handler) deleteIntegration(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	l, err := h.linkByID(c, s.id, c.PathValue("integrationId"))
	if err != nil {
		return nil, err
	}
	return nil, h.separate(c, s, l)
}

// separate deletes an integration that no replication uses.
func (h *Handler) separate(c *call, s mirrorService, l link) error {
	changes := []control.Change{control.DeleteDocument{Kind: kindIntegration, ID: l.id, If: control.At(l.revision)}}
	for _, id := range l.doc.Replications {
		r, err := h.replicationByID(c, s.id, id)
		if err == nil {
			return conflict("replication %s uses the integration: delete it first", r.id)
		}
		if !missing(err) {
			return err
		}
		// Its flow went another way; only our note of it is left.
		if d, err := h.o.Control.Document(c.Context(), kindReplication, id); err == nil {
			changes = append(changes, control.DeleteDocument{Kind: kindReplication, ID: id, If: control.At(d.Revision)})
		}
	}
	s.doc.Integrations = slices.DeleteFunc(slices.Clone(s.doc.Integrations), func(id string) bool { return id == l.id })
	_, err := h.o.Control.Commit(c.Context(), append(changes, s.put()...)...)
	return err
}

func (h *Handler) listKafkaIntegrations(c *call) (any, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, l := range h.links(c) {
		if l.doc.Alias == k.alias {
			ids = append(ids, l.id)
		}
	}
	return ids, nil
}

// kafkaLink is the integration that a path below a Kafka service names.
func (h *Handler) kafkaLink(c *call) (link, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return link{}, err
	}
	id := c.PathValue("integrationId")
	for _, l := range h.links(c) {
		if l.id == id && l.doc.Alias == k.alias {
			return l, nil
		}
	}
	return link{}, notFound(classNotFound, "there is no integration %s on service %s", id, k.id)
}

func (h *Handler) getKafkaIntegration(c *call) (any, error) {
	l, err := h.kafkaLink(c)
	if err != nil {
		return nil, err
	}
	return l.answer(), nil
}

func (h *Handler) createKafkaIntegration(c *call) (any, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return nil, err
	}
	source, destination, err := integrationBody(c)
	if err != nil {
		return nil, err
	}
	if source != k.id {
		return nil, badRequest("[sourceServiceId] must be %s, the Kafka service of the path", k.id)
	}
	s, err := h.mirrorByID(c, destination)
	if err != nil {
		return nil, err
	}
	return h.integrate(c, s, k)
}

func (h *Handler) deleteKafkaIntegration(c *call) (any, error) {
	l, err := h.kafkaLink(c)
	if err != nil {
		return nil, err
	}
	s, err := h.mirrorByID(c, l.doc.Service)
	if err != nil {
		return nil, err
	}
	return nil, h.separate(c, s, l)
}
