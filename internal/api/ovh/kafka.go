package ovh

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heliograph/internal/api/adapter"
	"heliograph/internal/cluster"
	"heliograph/internal/control"
)

// kafkaService is a cluster of control under OVHcloud's name.
type kafkaService struct {
	id      string
	alias   string
	cluster control.Cluster
}

// kafkaID is the id of the Kafka service that a cluster is.
func kafkaID(alias string) string { return idOf("kafka", alias) }

func (h *Handler) kafkaIDs(c *call) []string {
	ids := []string{}
	for _, cl := range h.o.Control.Clusters(c.Context()) {
		ids = append(ids, kafkaID(cl.Alias))
	}
	return ids
}

// kafkaOf is the Kafka service that the path names.
func (h *Handler) kafkaOf(c *call) (kafkaService, error) {
	return h.kafkaByID(c, c.PathValue("clusterId"))
}

func (h *Handler) kafkaByID(c *call, id string) (kafkaService, error) {
	for _, cl := range h.o.Control.Clusters(c.Context()) {
		if kafkaID(cl.Alias) == id {
			return kafkaService{id: id, alias: cl.Alias, cluster: cl}, nil
		}
	}
	return kafkaService{}, notFound(classServiceNotFound, "there is no Kafka service %s in project %s", id, c.project)
}

// open makes a client of the service that the path names, which must be one's own: the
// server's connection to a cluster may do more than a tenant that only copies from it.
func (h *Handler) open(c *call) (kafkaService, *cluster.Client, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return kafkaService{}, nil, err
	}
	cl, err := h.o.Control.Client(c.Context(), k.alias)
	return k, cl, err
}

// onCluster is work with a client of the service that the path names.
func (h *Handler) onCluster(do func(*call, kafkaService, *cluster.Client) (any, error)) work {
	return func(c *call) (any, error) {
		k, cl, err := h.open(c)
		if err != nil {
			return nil, err
		}
		defer cl.Close()
		return do(c, k, cl)
	}
}

// await looks until a cluster shows what was changed there, a moment after its answer.
func await(ctx context.Context, look func() (shown bool, err error)) error {
	for {
		if shown, err := look(); shown || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (h *Handler) listKafkas(c *call) (any, error) { return h.kafkaIDs(c), nil }

func (h *Handler) createKafka(*call) (any, error) {
	return nil, notFound(classNoAvailability, "heliograph orders no machines: register a cluster that there is with its own API, PUT /api/v1/clusters/{alias}")
}

func (h *Handler) updateKafka(c *call) (any, error) {
	if _, err := h.kafkaOf(c); err != nil {
		return nil, err
	}
	return nil, &Error{Status: http.StatusBadRequest, Class: classNoUpdate, Message: "a Kafka service is changed where it is registered: heliograph's own API, PUT /api/v1/clusters/{alias}"}
}

func (h *Handler) deleteKafka(c *call) (any, error) {
	if _, err := h.kafkaOf(c); err != nil {
		return nil, err
	}
	return nil, forbidden("heliograph deletes no Kafka clusters; heliograph's own API takes one out of its list, DELETE /api/v1/clusters/{alias}")
}

// patience bounds the questions that a description of a service asks of its cluster.
const patience = 5 * time.Second

func (h *Handler) getKafka(c *call) (any, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return nil, err
	}
	s := service{
		ID: k.id, Description: cmp.Or(k.cluster.Labels["description"], k.alias), Engine: "kafka", Category: "streaming",
		Plan: "registered", Flavor: "registered", Nodes: []node{}, Status: statusReady,
		NetworkType: "private", IPRestrictions: []struct{}{}, Endpoints: endpoints(k),
		Capabilities: map[string]capability{
			"integrations": can("crd"), "nodes": can("r"), "service": can("r"), "topic": can("crud"),
			"topicAcl": can("crd"), "users": can("crd"), "userCredentialsReset": can("c"), "userAccess": can(""),
		},
		RESTAPI: new(false), SchemaRegistry: new(false),
	}
	nodes, version, err := h.ask(c, k)
	switch {
	case err == nil:
		s.Nodes, s.NodeNumber, s.Version = nodes, len(nodes), version
	case control.KindOf(err) == control.Forbidden:
		// It is the operator's; how it is made is not for everybody to see.
	case c.Context().Err() != nil:
		return nil, err
	default:
		h.o.Log.Warn("a registered cluster does not answer", "cluster", k.alias, "err", err)
		s.Status = statusError
	}
	return s, nil
}

// ask asks the cluster for its brokers and release.
func (h *Handler) ask(c *call, k kafkaService) ([]node, string, error) {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	cl, err := h.o.Control.Client(ctx, k.alias)
	if err != nil {
		return nil, "", err
	}
	defer cl.Close()
	brokers, err := cl.Brokers(ctx)
	if err != nil {
		return nil, "", err
	}
	nodes := make([]node, 0, len(brokers))
	for _, b := range brokers {
		nodes = append(nodes, node{
			ID: idOf("node", k.alias, strconv.Itoa(int(b.ID))), Name: b.Host, Flavor: "registered", Region: b.Rack,
			Port: int(b.Port), Status: statusReady,
		})
	}
	features, err := cl.Features(ctx)
	return nodes, features.Version, err
}

func endpoints(k kafkaService) []endpoint {
	protocol := strings.ToUpper(cmp.Or(k.cluster.Properties["security.protocol"], "PLAINTEXT"))
	component := "kafka"
	if strings.HasPrefix(protocol, "SASL_") {
		component = "kafkaSASL"
	}
	out := []endpoint{}
	for _, address := range adapter.Entries(k.cluster.Properties["bootstrap.servers"]) {
		host, text, err := net.SplitHostPort(address)
		port, err2 := strconv.Atoi(text)
		if errors.Join(err, err2) != nil {
			continue
		}
		out = append(out, endpoint{
			Component: component, Domain: host, Port: &port, SSL: strings.HasSuffix(protocol, "SSL"), URI: new(address),
		})
	}
	return out
}

func (h *Handler) listKafkaNodes(c *call) (any, error) {
	nodes, err := h.kafkaNodes(c)
	if err != nil {
		return nil, err
	}
	return nodeIDs(nodes), nil
}

func (h *Handler) getKafkaNode(c *call) (any, error) {
	nodes, err := h.kafkaNodes(c)
	if err != nil {
		return nil, err
	}
	return nodeByID(nodes, c.PathValue("nodeId"))
}

func (h *Handler) kafkaNodes(c *call) ([]node, error) {
	k, err := h.kafkaOf(c)
	if err != nil {
		return nil, err
	}
	nodes, _, err := h.ask(c, k)
	return nodes, err
}

func nodeIDs(nodes []node) []string {
	ids := []string{}
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

func nodeByID(nodes []node, id string) (any, error) {
	for _, n := range nodes {
		if n.ID == id {
			return n, nil
		}
	}
	return nil, notFound(classNodeNotFound, "there is no node %s", id)
}
