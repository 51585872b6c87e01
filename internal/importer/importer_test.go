package importer

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

var update = flag.Bool("update", false, "write the goldens anew")

const corpus = "../config/testdata/corpus/"

// input reads a file of the corpus by the beginning of its name, or one of testdata.
func testFile(tb testing.TB, name string) File {
	tb.Helper()
	files, err := filepath.Glob(corpus + name + "-*")
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob("testdata/" + name)
	}
	if err != nil || len(files) != 1 {
		tb.Fatalf("%d files for %s: %v", len(files), name, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		tb.Fatal(err)
	}
	return File{Name: filepath.Base(files[0]), Data: data}
}

func importFiles(tb testing.TB, o Options, names ...string) *Result {
	tb.Helper()
	var files []File
	for _, name := range names {
		files = append(files, testFile(tb, name))
	}
	r, err := Import(files, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// load reads what came out, without the values of references.
func load(r *Result) *config.Deployment {
	return config.Load(config.Source{Name: "out.yaml", Bytes: r.Document, KeepReferences: true})
}

// TestPropertiesMeanTheSame imports every file of the corpus that config accepts
// and compares what both forms mean.
func TestPropertiesMeanTheSame(t *testing.T) {
	files, err := filepath.Glob(corpus + "*.properties")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	accepted := 0
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "-")
		if name == "45" {
			continue // a connector's configuration; see TestConnectorInAPropertiesFile
		}
		f := testFile(t, name)
		want := config.Load(config.Source{Name: f.Name, Bytes: f.Data, KeepReferences: true})
		r := importFiles(t, Options{}, name)
		if got := r.Complete(); got != (want.Err() == nil) {
			t.Errorf("%s: complete is %v, and the original's errors are: %v", f.Name, got, want.Err())
		}
		if want.Err() != nil {
			continue
		}
		accepted++
		got := load(r)
		if err := got.Err(); err != nil {
			t.Errorf("%s: the document is refused: %v\n%s", f.Name, err, r.Document)
			continue
		}
		sameDeployment(t, f.Name, want, got)
	}
	if accepted < 20 {
		t.Errorf("%d files were compared", accepted)
	}
}

// sameDeployment compares all that a deployment means. tasks.max is a hint and dropped.
func sameDeployment(t *testing.T, name string, want, got *config.Deployment) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreUnexported(config.Flow{}, config.Cluster{}, mirror.TopicSelection{}),
		cmpopts.IgnoreFields(config.Flow{}, "TasksMax", "Policy"),
		cmpopts.IgnoreFields(mirror.TopicSelection{}, "Policy"),
		cmpopts.IgnoreFields(config.Cluster{}, "Origin"),
		cmpopts.IgnoreFields(config.Process{}, "Strict"),
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b config.Secret) bool { return a.Reveal() == b.Reveal() }),
		cmp.Comparer(func(a, b mirror.Patterns) bool { return a.String() == b.String() }),
	}
	for _, part := range []struct {
		what      string
		want, got any
	}{
		{"aliases", want.Aliases, got.Aliases},
		{"clusters", want.Clusters, got.Clusters},
		{"process", want.Process, got.Process},
		{"flows", want.Flows, got.Flows},
	} {
		if diff := cmp.Diff(part.want, part.got, options); diff != "" {
			t.Errorf("%s: other %s (-original +imported):\n%s", name, part.what, diff)
		}
	}
	for i := range want.Flows {
		for _, topic := range []string{"orders", "a.orders", "heartbeats", "x.internal", "x.checkpoints.internal"} {
			if i >= len(got.Flows) {
				break
			}
			a, b := want.Flows[i], got.Flows[i]
			if w, g := a.Policy.RemoteTopic(a.ID.Source, topic), b.Policy.RemoteTopic(b.ID.Source, topic); w != g {
				t.Errorf("%s: %s becomes %s, not %s", name, topic, g, w)
			}
			w, _ := a.Selection.Replicates(topic)
			g, _ := b.Selection.Replicates(topic)
			if w != g {
				t.Errorf("%s: %s is copied: %v, not %v", name, topic, g, w)
			}
		}
	}
}

// TestEveryKeyIsNamed imports the corpus and looks for each key of it in the notes.
func TestEveryKeyIsNamed(t *testing.T) {
	files, _ := filepath.Glob(corpus + "*.properties")
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "-")
		f := testFile(t, name)
		entries, _ := config.ParseProperties(f.Name, f.Data)
		r := importFiles(t, Options{}, name)
		for _, e := range entries {
			named := false
			for _, n := range r.Notes {
				named = named || n.Setting == e.Key || strings.HasPrefix(n.Setting, e.Key+" = ")
			}
			if !named {
				t.Errorf("%s: %s is not named", f.Name, e.Key)
			}
		}
	}
}

// TestEveryFieldIsNamed plants a field that nobody knows into every object.
func TestEveryFieldIsNamed(t *testing.T) {
	for _, name := range []string{"connect-01", "connect-03", "connect-05", "strimzi-01", "strimzi-03", "strimzi-05", "strimzi-v1.yaml", "aiven-flows.json", "aiven-endpoints.json", "ovh.json", "connect-expand.json"} {
		f := testFile(t, name)
		in, err := recognise(f, Auto)
		if err != nil {
			t.Fatal(err)
		}
		var walk func(n *node, path string)
		walk = func(n *node, path string) {
			for _, item := range n.items {
				walk(item, path+"[]")
			}
			if n.kind != object {
				return
			}
			for _, child := range n.fields {
				walk(child.value, path+"."+child.name)
			}
			before := n.fields
			n.fields = append(slices.Clip(n.fields), field{name: "planted.field", line: n.line, value: &node{kind: scalar, text: "x", line: n.line}})
			defer func() { n.fields = before }()
			d := &draft{}
			switch in.format {
			case Strimzi:
				readStrimzi(d, []input{in}, DefaultMount)
			case Connect:
				readConnect(d, []input{in})
			case Aiven:
				readAiven(d, []input{in})
			case OVH:
				readOVH(d, []input{in})
			default:
				t.Fatal(in.format)
			}
			d.settle()
			for _, s := range d.settings {
				d.notes = append(d.notes, s.note(s.key))
			}
			for _, n := range d.notes {
				// A subtree that is left alone is named as a whole.
				setting := strings.TrimSuffix(n.Setting, " = x")
				if strings.HasSuffix(setting, "planted.field") || setting != "" && n.Verdict == Dropped && strings.HasSuffix(strings.ReplaceAll(path, "[]", ""), "."+lastName(setting)) {
					return
				}
			}
			for _, alone := range []string{"/v1.Secret", ".south-north-source.status.connector", ".south-north-checkpoint.status.connector", ".warehouse"} {
				if strings.HasPrefix(path, alone) {
					return // a whole that is left alone, and named as such
				}
			}
			t.Errorf("%s: a field at %q is not named", name, path)
		}
		for _, doc := range in.docs {
			if doc.word("kind") == "Secret" {
				walk(doc, "/v1.Secret")
			} else {
				walk(doc, "")
			}
		}
	}
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func golden(t *testing.T, name string, r *Result) {
	t.Helper()
	var b strings.Builder
	b.Write(r.Document)
	b.WriteString("\n=== notes\n")
	for _, n := range r.Notes {
		b.WriteString(n.String() + "\n")
	}
	file := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got), write it anew with -update:\n%s", file, diff)
	}
}

// TestGoldens shows whole imports. complete is what their exit code tells.
func TestGoldens(t *testing.T) {
	for _, tt := range []struct {
		name     string
		files    []string
		complete bool
	}{
		{"connect-01", []string{"connect-01"}, true},
		{"connect-03", []string{"connect-03"}, true},
		{"connect-05", []string{"connect-05"}, true},
		{"connect-expand", []string{"connect-expand.json"}, true},
		{"connect-three", []string{"connect-source.json", "connect-checkpoint.json", "connect-heartbeat.json"}, true},
		{"strimzi-01", []string{"strimzi-01"}, true},
		{"strimzi-03", []string{"strimzi-03"}, true},
		{"strimzi-05", []string{"strimzi-05"}, false},
		{"strimzi-v1", []string{"strimzi-v1.yaml"}, false},
		{"aiven", []string{"aiven-flows.json", "aiven-endpoints.json"}, true},
		{"ovh", []string{"ovh.json"}, false},
		{"ovh-alone", []string{"ovh-replication.json"}, false},
		{"properties", []string{"comments.properties"}, true},
	} {
		r := importFiles(t, Options{}, tt.files...)
		golden(t, tt.name, r)
		if r.Complete() != tt.complete {
			t.Errorf("%s: complete is %v", tt.name, r.Complete())
		}
		// What is missing beyond the document itself does not make it one that is refused.
		if err := load(r).Err(); err != nil && tt.complete {
			t.Errorf("%s: the document is refused: %v", tt.name, err)
		}
	}
}

func TestWithoutClusters(t *testing.T) {
	r, err := Import([]File{{Name: "a.properties", Data: []byte("A.bootstrap.servers = a:9092\nA->B.enabled = true\n")}}, Options{From: Properties})
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, n := range r.Notes {
		told = told || n.Verdict == Missing && strings.Contains(n.Why, "clusters is missing")
	}
	if r.Complete() || !told {
		t.Errorf("%v\n%s", r.Notes, r.Document)
	}
}

func TestConnectorInAPropertiesFile(t *testing.T) {
	r := importFiles(t, Options{}, "45")
	if r.Format != Connect || !strings.Contains(string(r.Document), "flows:") {
		t.Errorf("%s:\n%s", r.Format, r.Document)
	}
}

func TestSecretsLeaveTheDocument(t *testing.T) {
	const secret = "changeit-demo"
	for _, mode := range SecretsModes() {
		r := importFiles(t, Options{Secrets: mode, SecretsFile: "/etc/heliograph/mm.secrets"}, "25")
		inline := strings.Contains(string(r.Document), secret)
		if inline != (mode == SecretsInline) || r.Inline != inline || (len(r.Secrets) > 0) == inline {
			t.Errorf("%s: inline %v, told %v, %d secrets", mode, inline, r.Inline, len(r.Secrets))
		}
		for _, n := range r.Notes {
			if strings.Contains(n.String(), secret) {
				t.Errorf("%s: a note shows a secret: %s", mode, n.Setting)
			}
		}
		if inline {
			continue
		}
		values := map[string]string{}
		var file strings.Builder
		for _, s := range r.Secrets {
			values[s.Name] = s.Value.Reveal()
			file.WriteString(s.Name + "=" + s.Value.Reveal() + "\n")
		}
		f := testFile(t, "25")
		want := config.Load(config.Source{Name: f.Name, Bytes: f.Data})
		got := config.Load(config.Source{
			Name: "out.yaml", Bytes: r.Document,
			LookupEnv: func(name string) (string, bool) { v, ok := values[name]; return v, ok },
			ReadFile: func(path string) ([]byte, error) {
				if path != "/etc/heliograph/mm.secrets" {
					return nil, errors.New(path)
				}
				return []byte(file.String()), nil
			},
		})
		if err := got.Err(); err != nil {
			t.Fatal(err)
		}
		sameDeployment(t, string(mode), want, got)
	}
}

func TestSecretsInOddPlaces(t *testing.T) {
	const text = `clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
# A.ssl.key.password = s3cr3t
# use password="s3cr3t" on Mondays
A.sasl.jass.config = x required username="u" password="s3cr3t";
A->B.enabled = true
A->B.sasl.login.password = s3cr3t
tokens = https://user:s3cr3t@host/
`
	r, err := Import([]File{{Name: "a.properties", Data: []byte(text)}}, Options{Secrets: SecretsInEnv})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(r.Document), "s3cr3t") {
		t.Errorf("the document shows a secret:\n%s", r.Document)
	}
	for _, n := range r.Notes {
		if strings.Contains(n.String(), "s3cr3t") {
			t.Errorf("a note shows a secret: %s", n)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		files []File
		from  Format
		want  string
	}{
		"empty":     {[]File{{Name: "a", Data: nil}}, Auto, "a: the file is empty"},
		"JSON":      {[]File{{Name: "a", Data: []byte("{\n\"a\":")}}, Auto, "a: line 2: not JSON"},
		"two":       {[]File{{Name: "a", Data: []byte("{} {}")}}, Auto, "something stands behind"},
		"unknown":   {[]File{{Name: "a", Data: []byte(`{"x":1}`)}}, Auto, "not a format that is known"},
		"own":       {[]File{{Name: "a.yaml", Data: []byte("clusters:\n  A: {}\n")}}, Auto, "heliograph's own form"},
		"mixed":     {[]File{{Name: "a", Data: []byte("clusters=A,B")}, {Name: "b", Data: []byte(`{"source_cluster":"a"}`)}}, Auto, "one after the other"},
		"twice":     {[]File{{Name: "a", Data: []byte("clusters=A,B")}, {Name: "b", Data: []byte("clusters=A,B")}}, Auto, "of which each says everything"},
		"not YAML":  {[]File{{Name: "a.yaml", Data: []byte("a: [password-of-mine\nb: {")}}, Auto, "a.yaml: line"},
		"not that":  {[]File{{Name: "a", Data: []byte("clusters=A,B")}}, Aiven, "this is not Aiven JSON"},
		"deep":      {[]File{{Name: "a", Data: []byte(strings.Repeat("[", 100))}}, Auto, "too large or too deep"},
		"nothing":   {nil, Auto, "no file"},
		"JSON here": {[]File{{Name: "a", Data: []byte("{}")}}, Properties, "no properties file"},
	} {
		_, err := Import(tt.files, Options{From: tt.from})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "password-of-mine") {
			t.Errorf("%s: the message shows the file: %v", name, err)
		}
	}
}

// FuzzImport: whatever comes in, nothing breaks, what comes out is read as it
// was written, and no secret stands in a note.
func FuzzImport(f *testing.F) {
	files, _ := filepath.Glob(corpus + "*")
	more, _ := filepath.Glob("testdata/*")
	for _, file := range append(files, more...) {
		if data, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, ".golden") {
			f.Add(filepath.Base(file), data, string(Auto))
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte, from string) {
		if len(data) > 1<<16 {
			return
		}
		r, err := Import([]File{{Name: name, Data: data}}, Options{From: Format(from), Secrets: SecretsInEnv})
		if err != nil {
			return
		}
		if _, problems := config.ParseYAML("out.yaml", r.Document); problems.HasErrors() {
			t.Errorf("not read back: %v\n%s", problems, r.Document)
		}
		if r.Complete() && load(r).Err() != nil {
			t.Errorf("complete and refused: %v\n%s", load(r).Err(), r.Document)
		}
	})
}
