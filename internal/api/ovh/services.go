package ovh

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"heliograph/internal/control"
)

// status is the state of a service, a node or a user.
type status string

// The states that can happen here.
const (
	statusReady status = "READY"
	statusError status = "ERROR"
)

// service is cloud.project.database.Service, and kafka.Service with two more fields.
// What only a machine of OVHcloud has is null or empty.
type service struct {
	ID                 string                `json:"id"`
	Description        string                `json:"description"`
	Engine             string                `json:"engine"`
	Category           string                `json:"category"`
	Version            string                `json:"version"`
	Plan               string                `json:"plan"`
	Flavor             string                `json:"flavor"`
	NodeNumber         int                   `json:"nodeNumber"`
	Nodes              []node                `json:"nodes"`
	Status             status                `json:"status"`
	CreatedAt          *time.Time            `json:"createdAt"`
	MaintenanceTime    *string               `json:"maintenanceTime"`
	NetworkType        string                `json:"networkType"`
	NetworkID          *string               `json:"networkId"`
	SubnetID           *string               `json:"subnetId"`
	IPRestrictions     []struct{}            `json:"ipRestrictions"`
	Endpoints          []endpoint            `json:"endpoints"`
	Capabilities       map[string]capability `json:"capabilities"`
	DeletionProtection *bool                 `json:"deletionProtection"`
	EnablePrometheus   *bool                 `json:"enablePrometheus"`
	Storage            *struct{}             `json:"storage"`
	Disk               *struct{}             `json:"disk"`
	Backups            *struct{}             `json:"backups"`
	BackupTime         *string               `json:"backupTime"`

	RESTAPI        *bool `json:"restApi,omitempty"`
	SchemaRegistry *bool `json:"schemaRegistry,omitempty"`
}

type endpoint struct {
	Component string  `json:"component"`
	Domain    string  `json:"domain"`
	Path      *string `json:"path"`
	Port      *int    `json:"port"`
	Scheme    *string `json:"scheme"`
	SSL       bool    `json:"ssl"`
	SSLMode   *string `json:"sslMode"`
	URI       *string `json:"uri"`
}

type node struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Flavor    string     `json:"flavor"`
	Region    string     `json:"region"`
	Port      int        `json:"port"`
	Role      *string    `json:"role"`
	Status    status     `json:"status"`
	CreatedAt *time.Time `json:"createdAt"`
}

// capability says which verbs a service has for a part of it.
type capability struct {
	Create *string `json:"create"`
	Read   *string `json:"read"`
	Update *string `json:"update"`
	Delete *string `json:"delete"`
}

// can makes a capability of the first letters of its verbs.
func can(verbs string) capability {
	state := func(verb rune) *string {
		if slices.Contains([]rune(verbs), verb) {
			return new("enabled")
		}
		return new("disabled")
	}
	return capability{Create: state('c'), Read: state('r'), Update: state('u'), Delete: state('d')}
}

// serviceDocument is a MirrorMaker service that somebody made.
type serviceDocument struct {
	Project      string    `json:"project"`
	Description  string    `json:"description"`
	CreatedAt    time.Time `json:"createdAt"`
	Integrations []string  `json:"integrations,omitempty"` // that stand under it
}

const (
	kindService     = "ovh.service"
	kindIntegration = "ovh.integration"
	kindReplication = "ovh.replication"
)

// mirrorService is a MirrorMaker service: the one that every project has, or a
// document.
type mirrorService struct {
	id       string
	doc      serviceDocument
	revision control.Revision // zero for the one that every project has
}

// standing is the id of the MirrorMaker service that a project has without making one.
func standing(project string) string { return idOf("kafkaMirrorMaker", project) }

func (h *Handler) mirrorsOf(c *call) []mirrorService {
	out := []mirrorService{h.standing(c)}
	for _, d := range h.o.Control.Documents(c.Context(), kindService) {
		if s, err := decodeService(d); err == nil && s.doc.Project == c.project {
			out = append(out, s)
		}
	}
	return out
}

func (h *Handler) standing(c *call) mirrorService {
	return mirrorService{id: standing(c.project), doc: serviceDocument{Project: c.project, Description: "heliograph", CreatedAt: h.started}}
}

func decodeService(d control.Document) (mirrorService, error) {
	s := mirrorService{id: d.ID, revision: d.Revision}
	return s, json.Unmarshal(d.Value, &s.doc)
}

// mirrorOf is the MirrorMaker service that the path names.
func (h *Handler) mirrorOf(c *call) (mirrorService, error) {
	return h.mirrorByID(c, c.PathValue("clusterId"))
}

func (h *Handler) mirrorByID(c *call, id string) (mirrorService, error) {
	if id == standing(c.project) {
		return h.standing(c), nil
	}
	missing := notFound(classServiceNotFound, "there is no MirrorMaker service %s in project %s", id, c.project)
	d, err := h.o.Control.Document(c.Context(), kindService, id)
	if control.KindOf(err) == control.NotFound {
		return mirrorService{}, missing
	}
	if err != nil {
		return mirrorService{}, err
	}
	s, err := decodeService(d)
	if err != nil {
		return mirrorService{}, err
	}
	if s.doc.Project != c.project {
		return mirrorService{}, missing
	}
	return s, nil
}

// put is the change that stores the service's document; none where it has none.
func (s *mirrorService) put() []control.Change {
	if s.revision == 0 {
		return nil
	}
	return []control.Change{control.PutDocument{Kind: kindService, ID: s.id, Value: encode(s.doc), If: control.At(s.revision)}}
}

// encode makes the JSON of one of our documents, which always have one.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("a document of package ovh has no JSON: " + err.Error())
	}
	return data
}

func (h *Handler) listProjects(c *call) (any, error) {
	if c.project == "" {
		return []string{}, nil // a token that may name any project
	}
	return []string{c.project}, nil
}

func (h *Handler) listServices(c *call) (any, error) {
	ids := h.kafkaIDs(c)
	for _, s := range h.mirrorsOf(c) {
		ids = append(ids, s.id)
	}
	if category := c.URL.Query().Get("category"); category != "" && category != "streaming" {
		return []string{}, nil
	}
	return ids, nil
}

func (h *Handler) getService(c *call) (any, error) {
	if s, err := h.mirrorOf(c); err == nil {
		return h.mirrorAnswer(s), nil
	}
	return h.getKafka(c)
}

func (h *Handler) listMirrors(c *call) (any, error) {
	ids := []string{}
	for _, s := range h.mirrorsOf(c) {
		ids = append(ids, s.id)
	}
	return ids, nil
}

func (h *Handler) getMirror(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	return h.mirrorAnswer(s), nil
}

// mirrorVersion is the release of MirrorMaker that a service is like.
const mirrorVersion = "4.3"

func (h *Handler) mirrorAnswer(s mirrorService) service {
	return service{
		ID: s.id, Description: s.doc.Description, Engine: "kafkaMirrorMaker", Category: "streaming",
		Version: mirrorVersion, Plan: "heliograph", Flavor: "heliograph",
		NodeNumber: 1, Nodes: []node{h.ownNode(s)}, Status: statusReady, CreatedAt: &s.doc.CreatedAt,
		NetworkType: "private", IPRestrictions: []struct{}{}, Endpoints: []endpoint{},
		Capabilities: map[string]capability{
			"integrations": can("crd"), "replication": can("crud"), "nodes": can("r"), "service": can("crud"),
			"prometheus": can("r"), "prometheusCredentialsReset": can(""), "maintenances": can("r"), "maintenanceApply": can(""),
			"maintenanceTime": can(""), "serviceFlavor": can(""), "ipRestrictions": can(""), "deletionProtection": can(""),
		},
		DeletionProtection: new(s.revision == 0), EnablePrometheus: new(true),
	}
}

// machines are the fields of an order that ask OVHcloud for machines, networks or
// backups.
var machines = []string{"nodesPattern", "nodesList", "disk", "networkId", "subnetId", "backups", "backup", "backupTime", "forkFrom", "ipRestrictions"}

// ordered refuses an order of machines; which is no fault of the request's.
func (b body) ordered() error {
	for _, name := range machines {
		if _, given := b.Take(name); given && b.OK() {
			return notFound(classNoAvailability, "[%s] heliograph orders no machines; leave it out: a MirrorMaker service is a name here", name)
		}
	}
	return nil
}

func (h *Handler) createMirror(c *call) (any, error) {
	b := c.body()
	description, _ := b.Text("description")
	for _, name := range []string{"plan", "version", "maintenanceTime"} {
		b.Text(name) // a client must send them, and a name has none
	}
	if err := b.ordered(); err != nil {
		return nil, err
	}
	if err := b.Done(); err != nil {
		return nil, err
	}
	s := mirrorService{id: newID(), revision: 1, doc: serviceDocument{Project: c.project, Description: description, CreatedAt: h.o.Now().UTC()}}
	_, err := h.o.Control.Commit(c.Context(), control.PutDocument{Kind: kindService, ID: s.id, Value: encode(s.doc), If: control.Absent})
	if err != nil {
		return nil, err
	}
	return h.mirrorAnswer(s), nil
}

func (h *Handler) updateMirror(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	description, err := h.onlyDescription(c, h.mirrorAnswer(s))
	if err != nil {
		return nil, err
	}
	if s.revision == 0 {
		return nil, &Error{Status: http.StatusBadRequest, Class: classNoUpdate, Message: "this service is there with its project and has nothing to change"}
	}
	s.doc.Description = description
	if _, err := h.o.Control.Commit(c.Context(), s.put()...); err != nil {
		return nil, err
	}
	return h.mirrorAnswer(s), nil
}

// onlyDescription reads the body of a service's update. A client sends back what it
// has read; nothing but the description may differ.
func (h *Handler) onlyDescription(c *call, now service) (string, error) {
	b := c.body()
	description, given := b.Text("description")
	if !given {
		description = now.Description
	}
	var have map[string]json.RawMessage
	if err := json.Unmarshal(encode(now), &have); err != nil {
		return "", err
	}
	for name, value := range have {
		if sent, ok := b.Take(name); ok && !sameJSON(sent, value) && b.OK() {
			return "", &Error{Status: http.StatusBadRequest, Class: classNoUpdate, Message: "[" + name + "] cannot be changed here: heliograph runs no machines"}
		}
	}
	if err := b.Done(); err != nil {
		return "", err
	}
	if description == now.Description {
		return "", &Error{Status: http.StatusBadRequest, Class: classNoUpdate, Message: "nothing is to be changed"}
	}
	return description, nil
}

// sameJSON compares values, not their spelling.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return string(left) == string(right)
}

func (h *Handler) deleteMirror(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	switch {
	case err != nil:
		return nil, err
	case s.revision == 0:
		return nil, conflict("this service is there with its project and cannot be deleted")
	case len(s.doc.Integrations) > 0:
		return nil, conflict("the service has integrations: delete them first")
	}
	_, err = h.o.Control.Commit(c.Context(), control.DeleteDocument{Kind: kindService, ID: s.id, If: control.At(s.revision)})
	return nil, err
}
