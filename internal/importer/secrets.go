package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// SecretsMode is what becomes of secrets that stand in the original.
type SecretsMode string

// The modes.
const (
	SecretsInline SecretsMode = "inline" // as they are, with a note
	SecretsInEnv  SecretsMode = "env"    // ${env:NAME} in their place
	SecretsInFile SecretsMode = "file"   // ${file:PATH:NAME} in their place
)

// SecretsModes are all of them.
func SecretsModes() []SecretsMode {
	return []SecretsMode{SecretsInline, SecretsInEnv, SecretsInFile}
}

// Secret was taken out of the document.
type Secret struct {
	Name    string        `json:"name"` // of the variable, or of the key in the file
	Setting string        `json:"setting"`
	Value   config.Secret `json:"-"`
}

const providerPackage = "org.apache.kafka.common.config.provider."

// providerClasses are Kafka's config providers, by the name that they are given.
var providerClasses = map[string]string{"env": "EnvVarConfigProvider", "file": "FileConfigProvider", "dir": "DirectoryConfigProvider"}

// hideSecrets replaces secrets by references as far as o wants it, and reports
// whether any stays in plain text.
func (d *draft) hideSecrets(o Options) (secrets []Secret, inline bool) {
	h := &hider{draft: d, options: o}
	for i := range d.settings {
		s := &d.settings[i]
		// Certificates are no secrets, though nobody wants them printed.
		if !config.IsSecretKey(s.key) || strings.HasSuffix(s.key, ".certificates") || strings.HasSuffix(s.key, ".certificate.chain") {
			continue
		}
		if strings.HasSuffix(s.key, "sasl.jaas.config") {
			h.login(s)
		} else if trim(s.value) != "" && !isReference(trim(s.value)) {
			s.value = h.hide(s, s.key, trim(s.value))
		}
	}
	if len(h.secrets) > 0 {
		d.declareProvider(h.name, string(o.Secrets))
	}
	return h.secrets, h.inline
}

// isReference says whether a value names its secret. One that also holds text of
// its own is taken for one too: a reference inside a secret would not be resolved.
func isReference(value string) bool { return len(config.References(value)) > 0 }

type hider struct {
	*draft
	options Options
	name    string // of the provider
	secrets []Secret
	inline  bool
}

// hide returns what stands for the value.
func (h *hider) hide(s *setting, name, value string) string {
	if h.options.Secrets != SecretsInEnv && h.options.Secrets != SecretsInFile {
		h.inline = true
		s.because("a secret in plain text: keep the document private, or import with --secrets env or --secrets file")
		return value
	}
	if h.name == "" {
		h.name = h.provider(string(h.options.Secrets))
	}
	name = h.unique(name)
	h.secrets = append(h.secrets, Secret{Name: name, Setting: s.key, Value: config.NewSecret(value)})
	s.verdict = Changed
	if h.options.Secrets == SecretsInEnv {
		s.because("set the variable " + name + " to its secret before the start")
		return "${" + h.name + ":" + name + "}"
	}
	s.because("its secret is " + name + " in " + h.options.SecretsFile)
	return "${" + h.name + ":" + h.options.SecretsFile + ":" + name + "}"
}

// unique makes a name that may be a variable's and is not taken.
func (h *hider) unique(key string) string {
	name := "HELIOGRAPH_" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, key)
	taken := func(name string) bool {
		return slices.ContainsFunc(h.secrets, func(s Secret) bool { return s.Name == name })
	}
	for i, free := 2, name; ; i++ {
		if !taken(free) {
			return free
		}
		free = fmt.Sprintf("%s_%d", name, i)
	}
}

// secretOptions are the options of logins that must not be shown.
var secretOptions = map[string]bool{
	"password": true, "clientSecret": true, "ssl.truststore.password": true, "ssl.keystore.password": true,
	"ssl.key.password": true, "ssl.keystore.key": true, "oauth.client.secret": true, "oauth.access.token": true,
	"oauth.refresh.token": true, "oauth.password.grant.password": true, "clientAssertion": true,
}

// login hides the secret options of sasl.jaas.config; the rest of it may be read.
func (h *hider) login(s *setting) {
	modules, err := config.ParseJAAS(s.value)
	if err != nil || len(modules) != 1 {
		if trim(s.value) != "" && !isReference(trim(s.value)) {
			s.value = h.hide(s, s.key, s.value)
		}
		return
	}
	m := modules[0]
	changed := false
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		value := m.Options[name]
		if !secretOptions[name] || value == "" || isReference(value) {
			continue
		}
		hidden := h.hide(s, strings.TrimSuffix(s.key, "config")+name, value)
		changed = changed || hidden != value
		m.Options[name] = hidden
	}
	if changed {
		s.value = jaas(m)
	}
}

// jaas writes a login module's entry.
func jaas(m config.LoginModule) string {
	names := slices.SortedFunc(maps.Keys(m.Options), func(a, b string) int {
		first := func(s string) string { // the names people look for stand first
			if i := slices.Index([]string{"username", "password", "clientId", "clientSecret"}, s); i >= 0 {
				return fmt.Sprint(" ", i)
			}
			return s
		}
		return strings.Compare(first(a), first(b))
	})
	var b strings.Builder
	b.WriteString(m.Class + " " + m.Flag)
	for _, name := range names {
		key := name
		if strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < '0' || c > 'z' || c > '9' && c < 'A' || c > 'Z' && c < 'a') }) {
			key = jaasQuote(name)
		}
		b.WriteString(" " + key + "=" + jaasQuote(m.Options[name]))
	}
	b.WriteString(";")
	return b.String()
}

func jaasQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}

// provider finds a name for a config provider: one that the original declares
// for the same class, or one that is free.
func (d *draft) provider(kind string) string {
	name := kind
	for i := 2; ; i++ {
		s := d.find("config.providers." + name + ".class")
		if s == nil || strings.TrimPrefix(trim(s.value), providerPackage) == providerClasses[kind] && d.find("config.providers."+name+".param.allowed.paths") == nil && d.find("config.providers."+name+".param.allowlist.pattern") == nil {
			return name
		}
		name = fmt.Sprintf("%s%d", kind, i)
	}
}

// declareProvider makes the provider of references known, under the name that was found for it.
func (d *draft) declareProvider(name, kind string) {
	key := "config.providers." + name + ".class"
	if d.find(key) != nil {
		return
	}
	const list, why = "config.providers", "for references to secrets"
	if s := d.find(list); s != nil {
		s.items = append(config.ReadList(s.value), name)
		s.value = strings.Join(s.items, ",")
		s.verdict = Changed
		s.because(name + " is added for references to secrets")
	} else {
		d.settings = append(d.settings, setting{key: list, value: name, items: []string{name}, verdict: Added, why: []string{why}})
	}
	d.add(key, providerPackage+providerClasses[kind], why, origin{})
}
