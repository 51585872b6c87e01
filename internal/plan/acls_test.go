package plan

import (
	"testing"

	"heliograph/internal/kafka"
)

func acl(name, operation, permission string) kafka.ACL {
	return kafka.ACL{ResourceType: "TOPIC", ResourceName: name, PatternType: "LITERAL", Principal: "User:alice", Host: "*", Operation: operation, Permission: permission}
}

func TestACLPlansReadAsTheyAreDone(t *testing.T) {
	prefixed, group := acl("orders", "READ", "ALLOW"), acl("orders", "READ", "ALLOW")
	prefixed.PatternType, group.ResourceType = "PREFIXED", "GROUP"
	source := []kafka.ACL{
		acl("orders", "WRITE", "ALLOW"), acl("orders", "ALL", "ALLOW"), acl("orders", "ALL", "DENY"), acl("orders", "WRITE", "DENY"),
		acl("orders", "READ", "ALLOW"), acl("orders", "DESCRIBE", "ALLOW"), acl("not-yet-there", "READ", "ALLOW"),
		acl("B.orders", "READ", "ALLOW"), acl("mm2-offset-syncs.B.internal", "READ", "ALLOW"), acl("*", "READ", "ALLOW"),
		prefixed, group,
	}
	for name, identity := range map[string]bool{"default": false, "identity": true} {
		t.Run(name, func(t *testing.T) {
			d := desired(t, identity)
			in := ACLInput{Flow: flowAB, Selection: d.Selection, Source: source}
			actions := ACLs(in)
			golden(t, "acls-"+name, lines(actions))
			for _, a := range actions {
				if g, ok := a.(GrantACL); ok {
					in.Target = append(in.Target, g.ACL)
				}
			}
			for _, a := range ACLs(in) {
				if _, ok := a.(GrantACL); ok {
					t.Errorf("granted again: %s", a)
				}
			}
		})
	}
}
