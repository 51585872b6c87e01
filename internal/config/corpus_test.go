package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

var update = flag.Bool("update", false, "write the goldens anew")

// corpusName is a file's number, for the table below.
func corpusName(file string) string {
	name := filepath.Base(file)
	parts := strings.Split(name, "-")
	if parts[0] == "connect" || parts[0] == "strimzi" {
		return parts[0] + "-" + parts[1]
	}
	return parts[0]
}

// corpusVerdicts says which files are refused. The first line of each file says
// why; CONVERT files are refused by name as long as nothing imports them.
var corpusVerdicts = map[string]bool{ // true: accepted
	"01": true, "03": true, "05": true, "06": false, "08": true, "10": true, "11": true, "13": true, "15": false, "16": true,
	"18": true, "20": false, "21": false, "23": true, "25": true, "26": false, "28": false, "30": true, "31": true, "33": false,
	"35": true, "36": true, "38": true, "40": true, "41": true, "43": true, "45": false, "46": true, "48": false, "50": false,
	"51": true, "53": false, "55": true, "56": true, "58": false,
	"connect-01": false, "connect-03": false, "connect-05": false, "strimzi-01": false, "strimzi-03": false, "strimzi-05": false,
}

func corpusFile(tb testing.TB, name string) string {
	tb.Helper()
	files, err := filepath.Glob("testdata/corpus/" + name + "-*")
	if err != nil || len(files) != 1 {
		tb.Fatalf("%d files for %s: %v", len(files), name, err)
	}
	return files[0]
}

func readCorpus(tb testing.TB, name string) []byte {
	tb.Helper()
	return readTestFile(tb, corpusFile(tb, name))
}

func loadCorpus(tb testing.TB, name string) *Deployment {
	tb.Helper()
	return Load(Source{Name: filepath.Base(corpusFile(tb, name)), Bytes: readCorpus(tb, name)})
}

func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*")
	if err != nil || len(files) != len(corpusVerdicts) {
		t.Fatalf("%d files, %d verdicts: %v", len(files), len(corpusVerdicts), err)
	}
	var text strings.Builder
	for _, file := range files {
		name := corpusName(file)
		d := loadCorpus(t, name)
		accepted, known := corpusVerdicts[name]
		if !known || accepted != (d.Err() == nil) {
			t.Errorf("%s: accepted=%v is not its verdict; %v", file, d.Err() == nil, d.Problems)
		}
		for _, p := range d.Problems {
			text.WriteString(p.String() + "\n")
		}
	}
	golden(t, "testdata/corpus.golden", text.String())
}

// golden compares text with a file, or writes the file with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(readTestFile(t, file)), got); diff != "" {
		t.Errorf("%s (-want +got), write it anew with -update:\n%s", file, diff)
	}
}

// flowsOf lists the enabled flows.
func flowsOf(d *Deployment) string {
	var names []string
	for i := range d.Flows {
		if d.Flows[i].Enabled {
			names = append(names, d.Flows[i].ID.String())
		}
	}
	return strings.Join(names, " ")
}

// flowOf finds a flow by name.
func flowOf(tb testing.TB, d *Deployment, name string) *Flow {
	tb.Helper()
	for i := range d.Flows {
		if d.Flows[i].ID.String() == name {
			return &d.Flows[i]
		}
	}
	tb.Fatalf("no flow %s", name)
	return nil
}

func TestCorpusFlows(t *testing.T) {
	for name, want := range map[string]string{
		"01": "east->west", "03": "mill->archive", "05": "paris->oslo", "08": "A->B", "10": "source->target", "31": "primary->secondary",
		"35": "site1->hub site2->hub site3->hub", "36": "a->b b->c", "46": "paris->oslo", "51": "primary->mirror",
	} {
		if got := flowsOf(loadCorpus(t, name)); got != want {
			t.Errorf("%s: flows %q, want %q", name, got, want)
		}
	}
}

// topicCase says what a file makes of a topic: its name on the target, or "" if
// it is not copied.
type topicCase struct{ file, flow, topic, remote string }

func TestCorpusTopics(t *testing.T) {
	for _, tt := range []topicCase{
		{"01", "east->west", "orders", "east.orders"},
		{"01", "east->west", "orders2", ""},
		{"03", "mill->archive", "press.7", "mill.press.7"},
		{"03", "mill->archive", "presses", ""},
		{"05", "paris->oslo", "orders", "orders"},
		{"08", "A->B", "orders", "orders"},
		{"08", "A->B", "Billing", "Billing"},
		{"10", "source->target", "secrets.a", ""},
		{"10", "source->target", "orders", "source.orders"},
		{"11", "paris->oslo", "orders.eu", "paris.orders.eu"},
		{"11", "paris->oslo", "tmp.x", ""},
		{"13", "paris->oslo", "metrics.v12", ""},
		{"13", "paris->oslo", "metricsxvd", "paris.metricsxvd"},
		{"13", "paris->oslo", "audit-log", "paris.audit-log"},
		{"16", "shop->analytics", "recommendations", ""},
		{"16", "shop->analytics", "recommendations2", "shop.recommendations2"},
		{"16", "shop->analytics", "a.a", ""},
		{"16", "shop->analytics", "a.b", "shop.a.b"},
		{"18", "paris->oslo", "x.replica", "paris.x.replica"},
		{"18", "paris->oslo", "__consumer_offsets", ""},
		{"18", "paris->oslo", "mm2-offsets.oslo.internal", ""},
		{"35", "site2->hub", "x", "site2.x"},
		{"36", "a->b", "orders", "a.orders"},
		{"36", "b->c", "a.orders", "b.a.orders"},
		{"36", "b->c", "orders", ""},
		{"38", "paris->oslo", "orders", "paris_orders"},
		{"38", "paris->oslo", "user_profile", "paris_user_profile"},
		{"51", "primary->mirror", "reading.sensor.b", "reading.sensor.b"},
		{"51", "primary->mirror", "heartbeats", "primary.heartbeats"},
	} {
		f := flowOf(t, loadCorpus(t, tt.file), tt.flow)
		copied, _ := f.Selection.Replicates(tt.topic)
		remote := ""
		if copied {
			remote = f.Policy.RemoteTopic(f.ID.Source, tt.topic)
		}
		if remote != tt.remote {
			t.Errorf("%s: %s is copied as %q, want %q", tt.file, tt.topic, remote, tt.remote)
		}
	}
}

func TestCorpusSettings(t *testing.T) {
	f := flowOf(t, loadCorpus(t, "40"), "src->dst")
	if !f.Data.StartAtLatest || f.Data.FetchMaxBytes.Value != 64<<20 || f.Data.PartitionMaxBytes.Value != 64<<20 ||
		f.Data.Compression.Value != "zstd" || f.Data.MaxRequestBytes.Value != 64<<20 ||
		f.Positions.Commit.Interval.Seconds() != 5 || !f.Positions.Commit.Set {
		t.Errorf("40: %+v %+v", f.Data, f.Positions)
	}
	f = flowOf(t, loadCorpus(t, "41"), "paris->oslo")
	for name, factor := range map[string]int16{
		"topics": f.Topics.ReplicationFactor, "checkpoints": f.Checkpoints.ReplicationFactor, "heartbeats": f.Heartbeats.ReplicationFactor,
		"offset syncs": f.OffsetSyncs.ReplicationFactor, "positions": f.Positions.ReplicationFactor,
	} {
		if factor != -1 {
			t.Errorf("41: %s have factor %d", name, factor)
		}
	}
	f = flowOf(t, loadCorpus(t, "36"), "a->b")
	if f.Topics.Refresh.Interval.Seconds() != 5 || flowOf(t, loadCorpus(t, "36"), "b->c").Topics.Refresh.Interval.Seconds() != 30 {
		t.Errorf("36: the flow's interval does not beat the top level's: %+v", f.Topics)
	}
	f = flowOf(t, loadCorpus(t, "43"), "paris->oslo")
	if got := humanDuration(f.Topics.Refresh.Interval); got != "6d 22h 40m" {
		t.Errorf("43: %s", got)
	}
	f = flowOf(t, loadCorpus(t, "51"), "primary->mirror")
	if f.OffsetSyncs.OnSource || f.Data.Isolation != kafka.ReadCommitted || f.Topics.SyncACLs.On() || !f.Checkpoints.SyncGroups.On() {
		t.Errorf("51: %+v %+v", f.OffsetSyncs, f.Checkpoints)
	}
	if d := loadCorpus(t, "51"); len(d.Flows) != 1 {
		t.Errorf("51: something writes to the read-only source: %d flows", len(d.Flows))
	}
	f = flowOf(t, loadCorpus(t, "18"), "paris->oslo")
	if f.Groups.Accepts("any") {
		t.Error("18: an empty groups accepts a group")
	}
	f = flowOf(t, loadCorpus(t, "31"), "primary->secondary")
	if f.ExactlyOnce != ExactlyOnceEnabled || flowOf(t, loadCorpus(t, "30"), "primary->secondary").ExactlyOnce != ExactlyOnceDisabled {
		t.Errorf("31: %s", f.ExactlyOnce)
	}
	if f := flowOf(t, loadCorpus(t, "30"), "primary->secondary"); f.Losses.Poison != PoisonSkipAndRecord {
		t.Errorf("30: errors.tolerance=all is %s", f.Losses.Poison)
	}
}

func TestCorpusSecurity(t *testing.T) {
	d := loadCorpus(t, "23")
	plain, ok := d.Clusters["bus"].SASL.Credential.(Plain)
	if !ok || plain.Username != "$ConnectionString" || plain.Password.Reveal() != "Endpoint=sb://demo-ns.dst.example/;SharedAccessKeyName=demo;SharedAccessKey=AAAAbbbbCCCC=" {
		t.Errorf("23: %+v", d.Clusters["bus"].SASL)
	}
	d = loadCorpus(t, "25")
	lager, depot := d.Clusters["lager"].TLS, d.Clusters["depot"].TLS
	if !lager.VerifyHostname || depot.VerifyHostname || lager.Keystore.Type != "PKCS12" || depot.Keystore.KeyPassword.Reveal() != "other-demo" {
		t.Errorf("25: %+v %+v", lager, depot)
	}
	d = loadCorpus(t, "55")
	kerberos, ok := d.Clusters["paris"].SASL.Credential.(Kerberos)
	if !ok || kerberos != (Kerberos{ServiceName: "kafka", Principal: "mm@DEMO.EXAMPLE", Keytab: "/etc/mirror/mm.keytab"}) {
		t.Errorf("55: %+v", d.Clusters["paris"].SASL)
	}
	oauth, ok := d.Clusters["oslo"].SASL.Credential.(OAuth)
	if !ok || oauth.TokenEndpoint != "https://login.dst.example/oauth2/token" || oauth.ClientID != "mm" || oauth.ClientSecret.Reveal() != "demo" || oauth.Scope != "kafka" {
		t.Errorf("55: %+v", d.Clusters["oslo"].SASL)
	}
	d = loadCorpus(t, "56")
	if paris := d.Clusters["paris"]; paris.Protocol != SASLPlaintext || paris.SASL.Credential.(Plain).Username != "shared" {
		t.Errorf("56: %+v", paris)
	}
	if oslo := d.Clusters["oslo"]; oslo.Protocol != Plaintext || oslo.SASL != nil {
		t.Errorf("56: the shared login reaches oslo: %+v", oslo)
	}
	clients := flowOf(t, d, "paris->oslo").Clients
	for name, c := range map[string]Client{"record producer": clients.RecordProducer, "target admin": clients.TargetAdmin, "worker": clients.Worker, "target consumer": clients.TargetConsumer} {
		if c.SASL != nil || c.Protocol != Plaintext {
			t.Errorf("56: the shared login reaches the %s", name)
		}
	}
}

func TestProblemsShowNoSecrets(t *testing.T) {
	files, _ := filepath.Glob("testdata/corpus/*.properties")
	for _, file := range files {
		d := loadCorpus(t, corpusName(file))
		text := strings.Builder{}
		for _, p := range d.Problems {
			text.WriteString(p.String())
		}
		for i := range d.Flows {
			for _, s := range d.Flows[i].Effective() {
				text.WriteString(s.Key + "=" + s.Value + "\n")
			}
		}
		for _, secret := range []string{"changeit-demo", "other-demo", "SharedAccessKey=", "password=\"demo\"", "clientSecret=\"demo\"", "RFVNTVkg"} {
			if strings.Contains(text.String(), secret) {
				t.Errorf("%s: %q is shown", file, secret)
			}
		}
	}
}

func TestTargeting(t *testing.T) {
	d := loadCorpus(t, "36")
	var names []string
	for _, f := range d.Targeting("c", "nowhere") {
		names = append(names, f.ID.String())
	}
	if got := strings.Join(names, " "); got != "a->c b->c" {
		t.Errorf("flows into c: %s", got)
	}
	if len(d.Targeting()) != len(d.Flows) {
		t.Error("no names must mean all flows")
	}
	if len(d.Targeting(mirror.ClusterAlias("nowhere"))) != 0 {
		t.Error("an unknown cluster has flows")
	}
}
