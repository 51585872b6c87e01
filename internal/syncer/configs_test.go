package syncer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
)

// configRig is a TopicSync that feeds a ConfigSync.
type configRig struct {
	*topicRig
	configs *ConfigSync
}

func newConfigRig(t *testing.T, change func(*ConfigOptions)) *configRig {
	r := &configRig{}
	r.topicRig = newTopicRig(t, func(o *TopicOptions) {
		o.Created = func(topic string, configs map[string]string) { r.configs.Created(topic, configs) }
	})
	r.target.topic("heartbeats", 1, map[string]string{"cleanup.policy": "compact"})
	o := ConfigOptions{Flow: flowAB, Rules: desired(t, false).Configs, HoldFor: 24 * time.Hour, Pairs: r.sync.Pairs, Observe: r.sync.Observe, Log: r.log.logger()}
	if change != nil {
		change(&o)
	}
	r.configs = NewConfigSync(r.source, r.target, o)
	return r
}

func (r *configRig) both(t *testing.T, now time.Time) {
	t.Helper()
	r.round(t, now)
	must(t, r.configs.RunOnce(t.Context(), now))
}

func (r *configRig) overrides() map[string]string { return r.target.topics["A.orders"].overrides }

// Row I10: an operator's change of the copy is put back, but for excluded settings.
func TestOperatorsChangeOfTheCopyIsPutBack(t *testing.T) {
	r := newConfigRig(t, func(o *ConfigOptions) { o.Rules.Filter.Exclude = patterns(t, `delete\.retention\..*`) })
	r.source.topic("orders", 1, map[string]string{"delete.retention.ms": "1000", "retention.bytes": "1000"})
	r.round(t, start)
	r.target.topics["A.orders"].overrides = map[string]string{"delete.retention.ms": "2000", "retention.bytes": "2000"}
	r.both(t, start.Add(time.Second))
	if diff := cmp.Diff(map[string]string{"delete.retention.ms": "2000", "retention.bytes": "1000"}, r.overrides()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// Row I11: defaults of the source are set on the copy.
func TestDefaultsFromTheSourceAreSet(t *testing.T) {
	r := newConfigRig(t, func(o *ConfigOptions) {
		o.Rules.DefaultsFromSource = true
		o.Rules.Filter.Exclude = patterns(t, `delete\.retention\..*`)
	})
	r.source.topic("orders", 1, nil)
	r.target.topic("A.orders", 1, map[string]string{"delete.retention.ms": "2000", "retention.bytes": "2000"})
	r.both(t, start)
	if got := r.overrides(); got["retention.bytes"] != "-1" || got["delete.retention.ms"] != "2000" {
		t.Errorf("settings %v", got)
	}
}

// Row I12: an override that the source drops falls back to the target's default.
func TestDroppedOverrideFallsBack(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, map[string]string{"retention.bytes": "1000"})
	r.both(t, start)
	r.source.topics["orders"].overrides = nil
	r.both(t, start.Add(time.Second))
	if _, set := r.overrides()["retention.bytes"]; set {
		t.Errorf("settings %v", r.overrides())
	}
	if n := r.log.matching("topic setting changed", "retention.bytes: 1000 -> the target's default"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestDangerousChangeIsHeldAndSaidOnce(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.both(t, start)
	r.source.topics["orders"].overrides = map[string]string{"retention.ms": "1000", "max.message.bytes": "5"}
	for i := range 3 {
		r.both(t, start.Add(time.Duration(i)*time.Minute))
	}
	if diff := cmp.Diff(map[string]string{"max.message.bytes": "5"}, r.overrides()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if n := r.log.matching("level=WARN", "topic setting held", "retention.ms: 604800000 -> 1000"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
	if held := r.configs.Report().Held; len(held) != 1 {
		t.Errorf("report holds %v", held)
	}
	if !r.configs.Accept(plan.HoldKey{Topic: "A.orders", Config: "retention.ms"}) {
		t.Fatal("nothing to accept")
	}
	r.both(t, start.Add(4*time.Minute))
	if r.overrides()["retention.ms"] != "1000" || len(r.configs.Report().Held) != 0 {
		t.Errorf("settings %v after accepting", r.overrides())
	}
}

func TestHeldChangeIsMadeAfterADay(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, map[string]string{"retention.ms": "1000"})
	r.target.topic("A.orders", 1, nil)
	r.both(t, start)
	if len(r.overrides()) != 0 {
		t.Fatalf("settings %v at once", r.overrides())
	}
	r.both(t, start.Add(24*time.Hour))
	if r.overrides()["retention.ms"] != "1000" {
		t.Errorf("settings %v after a day", r.overrides())
	}
}

func TestRefusedTopicDoesNotKeepOthersFromBeingChanged(t *testing.T) {
	r := newConfigRig(t, nil)
	for _, name := range []string{"deaf", "mute", "orders"} {
		r.source.topic(name, 1, map[string]string{"max.message.bytes": "5"})
		r.target.topic("A."+name, 1, nil)
	}
	r.target.failing("alter", "A.deaf", kafka.CodeTopicAuthorizationFailed)
	r.source.failing("describe configs", "mute", kafka.CodeTopicAuthorizationFailed)
	r.both(t, start)
	r.both(t, start.Add(time.Minute))
	if r.overrides()["max.message.bytes"] != "5" {
		t.Errorf("settings %v", r.overrides())
	}
	for topic, hint := range map[string]string{"A.deaf": "ALTER_CONFIGS", "A.mute": "grant DESCRIBE_CONFIGS"} {
		if n := r.log.matching("not done", "remote_topic="+topic, hint); n != 1 {
			t.Errorf("%s said %d times, want once:\n%s", topic, n, r.log.text())
		}
		if !strings.Contains(r.configs.Report().Refused[topic], hint) {
			t.Errorf("report %v", r.configs.Report().Refused)
		}
	}
}

func TestTargetThatCannotAlterFailsTheRound(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, map[string]string{"max.message.bytes": "5"})
	r.target.topic("A.orders", 1, nil)
	r.round(t, start)
	r.target.failing("alter", "", kafka.CodeUnsupportedVersion)
	if err := r.configs.RunOnce(t.Context(), start); kafka.CodeOf(err) != kafka.CodeUnsupportedVersion {
		t.Errorf("error %v", err)
	}
}

func TestAlteredSettingsReachTheDataPlaneInTheNextRound(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.both(t, start)
	r.source.topics["orders"].overrides = map[string]string{"max.message.bytes": "5"}
	r.both(t, start.Add(time.Second))
	r.round(t, start.Add(2*time.Second))
	if got := r.last()[0].Settings.MaxMessageBytes; got != 5 {
		t.Errorf("max.message.bytes %d, want 5", got)
	}
}

func TestReadSettingsReachTheDataPlane(t *testing.T) {
	r := newConfigRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.both(t, start)
	r.target.topics["A.orders"].overrides = map[string]string{"message.timestamp.type": "LogAppendTime"}
	must(t, r.configs.RunOnce(t.Context(), start.Add(time.Second)))
	r.round(t, start.Add(2*time.Second))
	if !r.last()[0].Settings.LogAppendTime {
		t.Errorf("settings %+v", r.last()[0].Settings)
	}
}

// A refusal is remembered elsewhere, and holds for the value that was refused alone.
func TestRefusalOfAnEarlierProcessHolds(t *testing.T) {
	r := newConfigRig(t, func(o *ConfigOptions) {
		o.Refused = func(key plan.HoldKey, wish string) bool {
			return key == plan.HoldKey{Topic: "A.orders", Config: "retention.ms"} && wish == "=1000"
		}
	})
	r.source.topic("orders", 1, map[string]string{"retention.ms": "1000"})
	r.target.topic("A.orders", 1, map[string]string{"retention.ms": "2000"})
	for _, after := range []time.Duration{0, time.Hour, 48 * time.Hour} {
		r.both(t, start.Add(after))
	}
	if got := r.overrides()["retention.ms"]; got != "2000" {
		t.Errorf("the refused change was made: %s", got)
	}
	r.source.topics["orders"].overrides["retention.ms"] = "1500"
	for _, after := range []time.Duration{72 * time.Hour, 97 * time.Hour} {
		r.both(t, start.Add(after))
	}
	if got := r.overrides()["retention.ms"]; got != "1500" {
		t.Errorf("a change to another value was not made: %s", got)
	}
}
