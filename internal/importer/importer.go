package importer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// File is one input.
type File struct {
	Name string // for notes; its ending helps to tell what it is
	Data []byte
}

// Format is what a file is.
type Format string

// The formats that are read. Auto finds out.
const (
	Auto       Format = "auto"
	Properties Format = "properties" // MirrorMaker's mm2.properties
	Strimzi    Format = "strimzi"    // KafkaMirrorMaker2 resources
	Connect    Format = "connect"    // Connect connectors
	Aiven      Format = "aiven"      // Aiven's replication flows
	OVH        Format = "ovh"        // OVHcloud's replications and integrations
)

// Formats are all of them.
func Formats() []Format { return []Format{Auto, Properties, Strimzi, Connect, Aiven, OVH} }

// about names a format for people.
var about = map[Format]string{
	Properties: "MirrorMaker properties",
	Strimzi:    "Strimzi resources",
	Connect:    "Connect connectors",
	Aiven:      "Aiven JSON",
	OVH:        "OVHcloud JSON",
}

// Options are the choices of one import.
type Options struct {
	From    Format // empty is Auto
	Secrets SecretsMode
	// SecretsFile is where Secrets will lie, as references name it; for [SecretsInFile].
	SecretsFile string
	// Mount is the directory below which Kubernetes secrets will be mounted, each in a
	// directory of its name.
	Mount string
}

// DefaultMount is where Kubernetes secrets are looked for unless said otherwise.
const DefaultMount = "/etc/heliograph/secrets"

// Result is what came of an import.
type Result struct {
	Format   Format
	Document []byte // native YAML
	Notes    []Note
	// Secrets were taken out of the document; references in it name them.
	Secrets []Secret
	// Inline says that the document holds secrets in plain text.
	Inline bool
}

// Complete says that nothing is missing.
func (r *Result) Complete() bool {
	return !slices.ContainsFunc(r.Notes, func(n Note) bool { return n.Verdict == Missing })
}

// Import reads files of one format and writes one document. An error means that
// there is none; what the document lacks is told by notes.
func Import(files []File, o Options) (*Result, error) {
	if len(files) == 0 {
		return nil, errors.New("no file to import")
	}
	if o.Mount == "" {
		o.Mount = DefaultMount
	}
	inputs, err := read(files, o.From)
	if err != nil {
		return nil, err
	}
	d := &draft{}
	format := inputs[0].format
	for _, in := range inputs[1:] {
		if in.format != format {
			return nil, fmt.Errorf("%s holds %s and %s holds %s: import them one after the other", inputs[0].Name, about[format], in.Name, about[in.format])
		}
	}
	switch format {
	case Properties:
		if len(inputs) > 1 {
			return nil, fmt.Errorf("%s and %s are two MirrorMaker files, of which each says everything: import them one after the other", inputs[0].Name, inputs[1].Name)
		}
		readProperties(d, inputs[0].File)
	case Strimzi:
		readStrimzi(d, inputs, o.Mount)
	case Connect:
		readConnect(d, inputs)
	case Aiven:
		readAiven(d, inputs)
	case OVH:
		readOVH(d, inputs)
	default:
		return nil, fmt.Errorf("no reader for the format %q", format)
	}
	d.settle()
	r := &Result{Format: format}
	r.Secrets, r.Inline = d.hideSecrets(o)
	if r.Document, err = d.write(inputs); err != nil {
		return nil, err
	}
	d.judge(r.Document)
	if r.Document, err = d.write(inputs); err != nil { // again, with what is missing
		return nil, err
	}
	for _, s := range d.settings {
		r.Notes = append(r.Notes, s.note(s.key))
	}
	for _, n := range d.notes {
		if !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
	sortNotes(r.Notes, files)
	return r, nil
}

// sortNotes puts what is missing last, where it is seen, and the rest in the order of the files.
func sortNotes(notes []Note, files []File) {
	place := func(n Note) int { return slices.IndexFunc(files, func(f File) bool { return f.Name == n.File }) }
	rank := map[Verdict]int{Remark: 1, Missing: 2}
	slices.SortStableFunc(notes, func(a, b Note) int {
		if d := rank[a.Verdict] - rank[b.Verdict]; d != 0 {
			return d
		}
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return a.Line - b.Line
	})
}

// input is a file that was recognised.
type input struct {
	File
	format Format
	docs   []*node // of YAML and JSON
}

func read(files []File, from Format) ([]input, error) {
	var out []input
	for _, f := range files {
		in, err := recognise(f, from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out = append(out, in)
	}
	return out, nil
}

// recognise finds out what a file is.
func recognise(f File, from Format) (input, error) {
	in := input{File: f, format: from}
	data := bytes.TrimPrefix(f.Data, []byte("\xEF\xBB\xBF"))
	text := bytes.TrimLeft(data, " \t\r\n")
	name := strings.ToLower(f.Name)
	auto := from == "" || from == Auto
	switch {
	case len(text) == 0:
		return in, errors.New("the file is empty")
	case text[0] == '{' || text[0] == '[':
		doc, err := parseJSON(data)
		if err != nil {
			return in, err
		}
		in.docs = []*node{doc}
	case from == Properties, from == Connect, strings.HasSuffix(name, ".properties"):
		return in.properties(auto), nil
	case from == Strimzi, strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"), looksLikeResource(text):
		docs, err := parseYAML(data)
		if err != nil {
			return in, err
		}
		in.docs = docs
	case auto:
		return in.properties(auto), nil
	default:
		return in, fmt.Errorf("this is not %s", about[from])
	}
	if from == Properties {
		return in, errors.New("this is no properties file")
	}
	if auto {
		in.format = formatOf(in.docs)
	}
	if in.format == "" {
		if slices.ContainsFunc(in.docs, func(n *node) bool { return n.get("clusters") != nil || n.get("flows") != nil }) {
			return in, errors.New("this is heliograph's own form; there is nothing to import")
		}
		return in, errors.New("not a format that is known: name it with --from")
	}
	return in, nil
}

// properties tells a connector's configuration from a MirrorMaker file.
func (in input) properties(auto bool) input {
	if !auto && in.format == Properties {
		return in
	}
	entries, _ := config.ParseProperties(in.Name, in.Data)
	has := func(key string) bool {
		return slices.ContainsFunc(entries, func(e config.Entry) bool { return e.Key == key })
	}
	if in.format == Connect || has("connector.class") && (!has("clusters") || has("source.cluster.alias")) {
		in.format = Connect
		n := &node{kind: object, line: 1}
		for _, e := range entries {
			n.fields = append(n.fields, field{e.Key, e.Origin.Line, &node{kind: scalar, text: e.Value, line: e.Origin.Line}})
		}
		in.docs = []*node{n}
		return in
	}
	in.format = Properties
	return in
}

func looksLikeResource(text []byte) bool {
	return bytes.HasPrefix(text, []byte("apiVersion:")) || bytes.Contains(text, []byte("\napiVersion:"))
}

// formatOf tells documents apart by the names of their fields.
func formatOf(docs []*node) Format {
	for _, n := range docs {
		switch {
		case isResource(n):
			return Strimzi
		case isAiven(n):
			return Aiven
		case isOVH(n):
			return OVH
		case len(connectorsIn(n)) > 0:
			return Connect
		}
	}
	return ""
}
