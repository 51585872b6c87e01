package syncer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heliograph/internal/kafka"
)

func acl(name, operation string) kafka.ACL {
	return kafka.ACL{ResourceType: "TOPIC", ResourceName: name, PatternType: "LITERAL", Principal: "User:dummy", Host: "*", Operation: operation, Permission: "ALLOW"}
}

type aclRig struct {
	source, target *fakeCluster
	log            captured
	sync           *ACLSync
}

func newACLRig(t *testing.T, identity bool) *aclRig {
	r := &aclRig{source: newFakeCluster("A"), target: newFakeCluster("B")}
	r.sync = NewACLSync(r.source, r.target, ACLOptions{Flow: flowAB, Selection: desired(t, identity).Selection, Log: r.log.logger()})
	return r
}

func (r *aclRig) rounds(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		must(t, r.sync.RunOnce(t.Context(), start.Add(time.Duration(i)*time.Minute)))
	}
}

func TestACLsAreGrantedOnceAndNeverTakenBack(t *testing.T) {
	r := newACLRig(t, false)
	r.source.acls = []kafka.ACL{acl("orders", "DESCRIBE"), acl("orders", "WRITE"), acl("orders", "ALL")}
	r.rounds(t, 3)
	want := []kafka.ACL{acl("A.orders", "READ"), acl("A.orders", "DESCRIBE")}
	if !slices.Equal(r.target.acls, want) {
		t.Errorf("granted %v, want %v", r.target.acls, want)
	}
	r.source.acls = nil
	r.rounds(t, 1)
	if len(r.target.acls) != 2 {
		t.Errorf("left %v", r.target.acls)
	}
	if n := r.log.matching("ACLs granted", "count=2"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestNoAuthorizerIsOneInfoAndNoCallToTheTarget(t *testing.T) {
	r := newACLRig(t, false)
	r.source.failing("describe acls", "", &kafka.Error{Op: "describe ACLs", Cluster: "A", Code: kafka.CodeSecurityDisabled})
	r.rounds(t, 3)
	if info, debug := r.log.matching("level=INFO", "no authorizer"), r.log.matching("level=DEBUG", "no authorizer"); info != 1 || debug != 2 {
		t.Errorf("%d infos and %d debugs, want 1 and 2:\n%s", info, debug, r.log.text())
	}
	if len(r.target.calls) != 0 {
		t.Errorf("the target was called: %v", r.target.calls)
	}
	if got := r.sync.Report().Inactive; got != "cluster A has no authorizer, ACLs are not copied" {
		t.Errorf("inactive because %q", got)
	}
}

func TestTargetWithoutAuthorizerGetsNothing(t *testing.T) {
	r := newACLRig(t, false)
	r.source.acls = []kafka.ACL{acl("orders", "READ")}
	r.target.failing("describe acls", "", kafka.CodeSecurityDisabled)
	r.rounds(t, 3)
	if n := r.target.count("create acl"); n != 0 {
		t.Errorf("%d bindings sent", n)
	}
	if info := r.log.matching("level=INFO", "no authorizer", "cluster=B"); info != 1 {
		t.Errorf("%d infos, want 1:\n%s", info, r.log.text())
	}
}

func TestMissingRightToReadACLsIsSaidOnce(t *testing.T) {
	r := newACLRig(t, false)
	r.source.failing("describe acls", "", kafka.CodeClusterAuthorizationFailed)
	r.rounds(t, 3)
	if n := r.log.matching("not done", "grant DESCRIBE on the cluster"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
	if !strings.Contains(r.sync.Report().Inactive, "cannot be read") {
		t.Errorf("inactive because %q", r.sync.Report().Inactive)
	}
	r.source.failing("describe acls", "", nil)
	r.rounds(t, 1)
	if r.sync.Report().Inactive != "" {
		t.Errorf("still inactive: %s", r.sync.Report().Inactive)
	}
}

func TestTargetThatHidesItsACLsStillGetsThemOnce(t *testing.T) {
	r := newACLRig(t, false)
	r.source.acls = []kafka.ACL{acl("orders", "READ")}
	r.target.failing("describe acls", "", kafka.CodeClusterAuthorizationFailed)
	r.rounds(t, 3)
	if n := r.target.count("create acl"); n != 1 {
		t.Errorf("%d bindings sent, want 1", n)
	}
}

func TestRefusedGrantsAreOneError(t *testing.T) {
	r := newACLRig(t, false)
	r.source.acls = []kafka.ACL{acl("orders", "READ"), acl("payments", "READ")}
	r.target.failing("create acl", "", kafka.CodeClusterAuthorizationFailed)
	err := r.sync.RunOnce(t.Context(), start)
	want := "2 ACLs could not be granted on cluster B, the first is ALLOW READ of User:dummy on topic A.orders: CLUSTER_AUTHORIZATION_FAILED (grant ALTER on the cluster, or set sync.topic.acls.enabled=false)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestWildcardIsNeverGrantedUnderIdentity(t *testing.T) {
	r := newACLRig(t, true)
	r.source.acls = []kafka.ACL{acl("*", "READ"), acl("orders", "READ")}
	r.rounds(t, 3)
	if !slices.Equal(r.target.acls, []kafka.ACL{acl("orders", "READ")}) {
		t.Errorf("granted %v", r.target.acls)
	}
	if n := r.log.matching("level=WARN", "ACL not copied", "every topic"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}
