package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"heliograph/internal/mirror"
)

// Source is a file to load and the ways out of this package that its config
// providers may use. A nil function means that the provider is not available.
type Source struct {
	Name  string // shown in problems
	Bytes []byte

	ReadFile  func(path string) ([]byte, error)
	ReadDir   func(path string) (names []string, err error)
	LookupEnv func(name string) (value string, ok bool)

	// Strict refuses what is otherwise warned of: unknown and misplaced keys.
	Strict bool
	// KeepReferences leaves references as they are, undeclared providers apart, for who reads a
	// file where its secrets are not. Nothing may be run from what comes of it.
	KeepReferences bool

	uses  *[]Use // filled for [Review]
	parts bool   // the entries are resources: a cluster may stand alone, and nothing need run
}

// reference is Kafka's pattern of a provider expression: ${provider:path:key}
// or ${provider:key}.
var reference = regexp.MustCompile(`\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}`)

// hasReference says whether the value holds a provider expression.
func hasReference(value string) bool { return reference.MatchString(value) }

type providerKind uint8

const (
	providerFile providerKind = iota + 1
	providerDirectory
	providerEnv
)

// providerClasses maps the class names that files hold to what is built in.
var providerClasses = map[string]providerKind{
	"FileConfigProvider":      providerFile,
	"DirectoryConfigProvider": providerDirectory,
	"EnvVarConfigProvider":    providerEnv,
	"file":                    providerFile,
	"directory":               providerDirectory,
	"env":                     providerEnv,
}

const providerPackage = "org.apache.kafka.common.config.provider."

// provider is one declared config provider.
type provider struct {
	name    string
	kind    providerKind
	allowed []string         // allowed.paths; empty: everything
	names   *mirror.Patterns // allowlist.pattern; nil: every variable
}

// providers resolves the references of one file.
type providers struct {
	source   Source
	declared map[string]provider
	broken   map[string]bool // declared, but not usable: said once at its declaration
	files    map[string]map[string]string
}

// newProviders reads config.providers and its parameters.
func newProviders(src Source, raw view, r *report) *providers {
	ps := &providers{source: src, declared: map[string]provider{}, broken: map[string]bool{}, files: map[string]map[string]string{}}
	list := raw["config.providers"]
	for _, name := range list.list() {
		prefix := "config.providers." + name + "."
		class, ok := raw[prefix+"class"]
		if !ok {
			r.errorf(list.Origin, "add "+prefix+"class", "config provider %q has no class", name)
			ps.broken[name] = true
			continue
		}
		kind, ok := providerClasses[strings.TrimPrefix(trim(class.Raw), providerPackage)]
		if !ok {
			r.errorf(class.Origin, "FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider are built in; bring other secrets through a file or a variable",
				"config provider class %s is not known", trim(class.Raw))
			ps.broken[name] = true
			continue
		}
		p := provider{name: name, kind: kind}
		if v, ok := raw[prefix+"param.allowed.paths"]; ok {
			p.allowed = v.list()
			for _, dir := range p.allowed {
				if !path.IsAbs(dir) {
					r.errorf(v.Origin, "", "%q is not an absolute path", dir)
				}
			}
		}
		if v, ok := raw[prefix+"param.allowlist.pattern"]; ok {
			names, err := mirror.CompilePatterns([]string{trim(v.Raw)})
			if err != nil {
				r.errorf(v.Origin, "", "not a pattern that can be read: %v", err)
				ps.broken[name] = true
				continue
			}
			p.names = &names
		}
		ps.declared[name] = p
	}
	return ps
}

// resolve replaces every reference in the value; what cannot be replaced is an
// error by key. The value's own text is never part of a message.
func (ps *providers) resolve(v value, r *report) value {
	if v.Literal || !hasReference(v.Raw) {
		return v
	}
	v.Text = ps.expand(v.Raw, &v, r)
	v.Referenced = true
	for i, item := range v.Items {
		if i == 0 {
			v.Items = slices.Clone(v.Items)
		}
		v.Items[i] = ps.expand(item, &v, r)
	}
	return v
}

func (ps *providers) expand(s string, v *value, r *report) string {
	return reference.ReplaceAllStringFunc(s, func(expr string) string {
		m := reference.FindStringSubmatch(expr)
		text, err := ps.lookup(m[1], m[2], m[3])
		if err != nil {
			r.errorf(v.Origin, err.hint, "%s: %s", expr, err.message)
			v.Unresolved = true
			return expr
		}
		if ps.source.KeepReferences {
			v.Unresolved = true
			return expr
		}
		if ps.refers(text) {
			r.warnf(v.Origin, "write the value itself where "+expr+" points to", "%s: what it stands for is a reference again, which is taken as it is written", expr)
		}
		r.conceal(v.Origin.Key, text, expr)
		return text
	})
}

// refers says whether a provider's value names a provider in its turn. Values
// are looked up once, as in Kafka.
func (ps *providers) refers(text string) bool {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		if _, ok := ps.declared[m[1]]; ok {
			return true
		}
	}
	return false
}

// lookupError is why a reference has no value; it never holds one.
type lookupError struct{ message, hint string }

func (ps *providers) lookup(name, dir, key string) (string, *lookupError) {
	p, ok := ps.declared[name]
	if !ok {
		if ps.broken[name] {
			return "", &lookupError{message: fmt.Sprintf("config provider %q cannot be used", name)}
		}
		return "", &lookupError{
			message: fmt.Sprintf("config provider %q is not declared; its text would be sent literally", name),
			hint:    "declare it in config.providers, or use one that is declared" + oneOf(ps.names()),
		}
	}
	switch {
	case ps.source.KeepReferences:
		return "", nil
	case p.kind == providerEnv:
		return ps.env(p, dir, key)
	case p.kind == providerDirectory:
		return ps.directory(p, dir, key)
	default:
		return ps.file(p, dir, key)
	}
}

func (ps *providers) names() []string {
	var names []string
	for name := range ps.declared {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

func (ps *providers) env(p provider, dir, key string) (string, *lookupError) {
	switch {
	case dir != "":
		return "", &lookupError{message: "an environment variable has no path", hint: "write ${" + p.name + ":" + key + "}"}
	case p.names != nil && !p.names.Match(key):
		return "", &lookupError{message: "the variable is not allowed by allowlist.pattern"}
	case ps.source.LookupEnv == nil:
		return "", &lookupError{message: "environment variables cannot be read here"}
	}
	text, ok := ps.source.LookupEnv(key)
	if !ok {
		return "", &lookupError{message: "the environment variable is not set", hint: "set " + key + " before the start"}
	}
	return text, nil
}

func (ps *providers) directory(p provider, dir, key string) (string, *lookupError) {
	if err := p.permits(dir); err != nil {
		return "", err
	}
	if ps.source.ReadDir == nil || ps.source.ReadFile == nil {
		return "", &lookupError{message: "directories cannot be read here"}
	}
	names, err := ps.source.ReadDir(dir)
	if err != nil {
		return "", &lookupError{message: "the directory cannot be read: " + err.Error()}
	}
	if !slices.Contains(names, key) {
		return "", &lookupError{message: "the directory has no such file"}
	}
	data, err := ps.source.ReadFile(path.Join(dir, key))
	if err != nil {
		return "", &lookupError{message: "the file cannot be read: " + err.Error()}
	}
	return string(data), nil
}

func (ps *providers) file(p provider, name, key string) (string, *lookupError) {
	if err := p.permits(name); err != nil {
		return "", err
	}
	if ps.source.ReadFile == nil {
		return "", &lookupError{message: "files cannot be read here"}
	}
	values, ok := ps.files[name]
	if !ok {
		data, err := ps.source.ReadFile(name)
		if err != nil {
			return "", &lookupError{message: "the file cannot be read: " + err.Error()}
		}
		if !utf8.Valid(data) {
			return "", &lookupError{message: "the file is not UTF-8"}
		}
		entries, problems := ParseProperties(name, data)
		if problems.HasErrors() {
			return "", &lookupError{message: fmt.Sprintf("the file cannot be read: %s", problems.firstError())}
		}
		values = map[string]string{}
		for _, e := range entries {
			values[e.Key] = e.Value
		}
		ps.files[name] = values
	}
	text, ok := values[key]
	if !ok {
		return "", &lookupError{message: "the file has no such key"}
	}
	return text, nil
}

// permits applies allowed.paths: a normalised prefix by whole components.
func (p provider) permits(name string) *lookupError {
	if len(p.allowed) == 0 {
		return nil
	}
	clean := path.Clean(name)
	for _, dir := range p.allowed {
		dir = path.Clean(dir)
		if clean == dir || strings.HasPrefix(clean, strings.TrimSuffix(dir, "/")+"/") {
			return nil
		}
	}
	return &lookupError{message: "the path is outside allowed.paths of provider " + p.name}
}

func (ps Problems) firstError() string {
	for _, p := range ps {
		if p.Severity == Error {
			return fmt.Sprintf("line %d: %s", p.Line, p.Message)
		}
	}
	return ""
}
