package ovh

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
)

// topicACL is cloud.project.database.kafka.TopicAcl.
type topicACL struct {
	ID         string `json:"id"`
	Permission string `json:"permission"`
	Topic      string `json:"topic"`
	Username   string `json:"username"`
}

// operations are what each permission is for Kafka, the widest first. READ and WRITE
// imply DESCRIBE.
var operations = []struct {
	permission string
	operations []string
}{
	{"admin", []string{"ALL"}},
	{"readwrite", []string{"READ", "WRITE"}},
	{"read", []string{"READ"}},
	{"write", []string{"WRITE"}},
}

func operationsOf(permission string) []string {
	for _, o := range operations {
		if o.permission == permission {
			return o.operations
		}
	}
	return nil
}

// permissions is cloud.project.database.kafka.Permissions.
type permissions struct {
	Names          []string `json:"names"`
	Topic          []string `json:"topic"`
	SchemaRegistry []string `json:"schemaRegistry"`
}

func permissionNames() []string {
	names := []string{}
	for _, o := range operations {
		names = append(names, o.permission)
	}
	slices.Sort(names)
	return names
}

func (h *Handler) permissions(c *call) (any, error) {
	if _, err := h.kafkaOf(c); err != nil {
		return nil, err
	}
	return permissions{Names: permissionNames(), Topic: permissionNames(), SchemaRegistry: []string{}}, nil
}

// pattern turns OVHcloud's way to name topics into Kafka's: a name, "*", or a prefix
// with a star behind.
func pattern(topic string) (name, kind string, ok bool) {
	prefix, star := strings.CutSuffix(topic, "*")
	switch {
	case topic == "*":
		return "*", "LITERAL", true
	case strings.ContainsAny(prefix, "*?"):
		return "", "", false
	case star:
		return prefix, "PREFIXED", true
	}
	return topic, "LITERAL", true
}

// holder is a user and what the bindings say about one pattern of topics.
type holder struct {
	username, topic string
	operations      []string
}

// holders sorts the bindings that could be OVHcloud's ACLs: those that allow a user
// something on topics, from anywhere. Others stand beside them and are not shown.
func holders(acls []kafka.ACL) []holder {
	var out []holder
	for _, a := range acls {
		username, ok := strings.CutPrefix(a.Principal, "User:")
		if !ok || a.ResourceType != "TOPIC" || a.Permission != "ALLOW" || a.Host != "*" {
			continue
		}
		topic := a.ResourceName
		if a.PatternType == "PREFIXED" {
			topic += "*"
		}
		i := slices.IndexFunc(out, func(o holder) bool { return o.username == username && o.topic == topic })
		if i < 0 {
			i = len(out)
			out = append(out, holder{username: username, topic: topic})
		}
		out[i].operations = append(out[i].operations, a.Operation)
	}
	slices.SortFunc(out, func(a, b holder) int {
		return strings.Compare(a.username+"\x00"+a.topic, b.username+"\x00"+b.topic)
	})
	return out
}

// has says whether a permission's operations are all there.
func (o holder) has(permission string) bool {
	return !slices.ContainsFunc(operationsOf(permission), func(op string) bool { return !slices.Contains(o.operations, op) })
}

// acl is the ACL of a permission that the holder has.
func (o holder) acl(k kafkaService, permission string) topicACL {
	return topicACL{ID: idOf("acl", k.alias, o.username, o.topic, permission), Permission: permission, Topic: o.topic, Username: o.username}
}

// widest is the permission that says most of what a holder may do.
func (o holder) widest() (string, bool) {
	for _, p := range operations {
		if o.has(p.permission) {
			return p.permission, true
		}
	}
	return "", false
}

func listACLs(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	acls, err := cl.DescribeACLs(c.Context())
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, o := range holders(acls) {
		if permission, ok := o.widest(); ok {
			ids = append(ids, o.acl(k, permission).ID)
		}
	}
	return ids, nil
}

// aclOf is the ACL that the path names, and who has it. A user with "readwrite" can be
// asked for by the ids of "read" and "write" too: they may have been made one by one.
func aclOf(c *call, k kafkaService, acls []kafka.ACL) (topicACL, holder, error) {
	id := c.PathValue("aclId")
	for _, o := range holders(acls) {
		for _, p := range operations {
			if a := o.acl(k, p.permission); a.ID == id && o.has(p.permission) {
				return a, o, nil
			}
		}
	}
	return topicACL{}, holder{}, notFound(classNotFound, "there is no ACL %s on Kafka service %s", id, k.id)
}

func getACL(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	acls, err := cl.DescribeACLs(c.Context())
	if err != nil {
		return nil, err
	}
	a, _, err := aclOf(c, k, acls)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// bindings are the ones that a permission consists of.
func bindings(o holder, permission string) []kafka.ACL {
	name, kind, _ := pattern(o.topic)
	var out []kafka.ACL
	for _, op := range operationsOf(permission) {
		out = append(out, kafka.ACL{
			ResourceType: "TOPIC", ResourceName: name, PatternType: kind,
			Principal: "User:" + o.username, Host: "*", Operation: op, Permission: "ALLOW",
		})
	}
	return out
}

// groups is the binding that lets a reader read with a group, of whatever name, as
// OVHcloud's read permission does.
func groups(username string) kafka.ACL {
	return kafka.ACL{
		ResourceType: "GROUP", ResourceName: "*", PatternType: "LITERAL",
		Principal: "User:" + username, Host: "*", Operation: "READ", Permission: "ALLOW",
	}
}

// reads says whether a holder reads topics.
func (o holder) reads() bool { return o.has("read") || o.has("admin") }

func (h *Handler) createACL(c *call) (any, error) {
	b := c.body()
	b.Text("id") // read-only
	permission, _ := b.Enum("permission", permissionNames()...)
	if permission == "" {
		b.Fail("permission", "is required")
	}
	o := holder{topic: b.Required("topic"), username: b.Required("username")}
	if _, _, ok := pattern(o.topic); !ok {
		b.Fail("topic", "a star may stand at the end only, and a question mark nowhere: Kafka's ACLs know names and prefixes")
	}
	if err := b.Done(); err != nil {
		return nil, err
	}
	k, cl, err := h.open(c)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx := c.Context()
	acls, err := cl.DescribeACLs(ctx)
	if err != nil {
		return nil, err
	}
	out := o.acl(k, permission)
	for _, have := range holders(acls) {
		if have.username == o.username && have.topic == o.topic && have.has(permission) {
			return nil, conflict("user %s has the permission %s on %s already: %s", o.username, permission, o.topic, out.ID)
		}
	}
	add := bindings(o, permission)
	if permission != "write" {
		add = append(add, groups(o.username))
	}
	if err := cmp.Or(cl.CreateACLs(ctx, add)...); err != nil {
		return nil, err
	}
	return out, awaitACL(ctx, cl, func(acls []kafka.ACL) bool {
		return slices.ContainsFunc(holders(acls), func(have holder) bool {
			return have.username == o.username && have.topic == o.topic && have.has(permission)
		})
	})
}

// awaitACL waits until the cluster shows what was changed.
func awaitACL(ctx context.Context, cl *cluster.Client, shown func([]kafka.ACL) bool) error {
	return await(ctx, func() (bool, error) {
		acls, err := cl.DescribeACLs(ctx)
		return err == nil && shown(acls), err
	})
}

func deleteACL(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	ctx := c.Context()
	acls, err := cl.DescribeACLs(ctx)
	if err != nil {
		return nil, err
	}
	a, o, err := aclOf(c, k, acls)
	if err != nil {
		return nil, err
	}
	remove := bindings(o, a.Permission)
	// With the last topic that a user reads goes the right to use groups.
	left := slices.DeleteFunc(slices.Clone(acls), func(have kafka.ACL) bool { return slices.Contains(remove, have) })
	if a.Permission != "write" && !slices.ContainsFunc(holders(left), func(have holder) bool {
		return have.username == o.username && have.reads()
	}) {
		remove = append(remove, groups(o.username))
	}
	_, errs := cl.DeleteACLs(ctx, remove)
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return nil, awaitACL(ctx, cl, func(acls []kafka.ACL) bool {
		return !slices.ContainsFunc(acls, func(have kafka.ACL) bool { return slices.Contains(remove, have) })
	})
}
