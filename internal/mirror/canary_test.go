package mirror

import "testing"

// A canary's copies must be internal to every MirrorMaker, old and new, of either naming.
func TestCanaryTopicsAreInternal(t *testing.T) {
	for name, policy := range map[string]ReplicationPolicy{
		"default":       NewDefaultPolicy(PolicyOptions{}),
		"separator":     NewDefaultPolicy(PolicyOptions{Separator: "_"}),
		"default 3.9":   NewDefaultPolicy(PolicyOptions{BaselineInternal: true}),
		"identity":      NewIdentityPolicy(PolicyOptions{Source: "A"}),
		"identity 3.9 ": NewIdentityPolicy(PolicyOptions{Source: "A", BaselineInternal: true}),
	} {
		remote := Canary(policy, "A").RemoteTopic(CanaryAlias("A"), "orders")
		if want := "mm2-canary." + policy.RemoteTopic("A", "orders") + ".internal"; remote != want {
			t.Errorf("%s: %s, want %s", name, remote, want)
		}
		exclude, err := CompilePatterns([]string{DefaultTopicsExclude4})
		if err != nil {
			t.Fatal(err)
		}
		if !policy.IsInternalTopic(remote) && !exclude.Match(remote) {
			t.Errorf("%s: %s would be copied on", name, remote)
		}
	}
}
