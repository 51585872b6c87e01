package config

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mechanisms are the logins there are, as messages list them.
var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"}

// connection reads the connection keys of one client. owner names it in
// problems that no line is to blame for.
func (b *builder) connection(v view, owner Origin) Connection {
	c := Connection{Protocol: Plaintext}
	if val, ok := v["bootstrap.servers"]; ok {
		c.BootstrapServers = b.bootstrap(val)
	}
	if val, ok := v["security.protocol"]; ok {
		p := Protocol(strings.ToUpper(trim(val.Text)))
		switch p {
		case Plaintext, SSL, SASLPlaintext, SASLSSL:
			c.Protocol = p
		} // others were refused when the key was checked
	}
	if c.Protocol.UsesTLS() {
		c.TLS = b.tls(v)
	}
	if c.Protocol.UsesSASL() {
		c.SASL = b.sasl(v, owner)
	}
	return c
}

var hostPort = regexp.MustCompile(`^(?:[A-Za-z_]+://)?(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._%-]+):([0-9]+)$`)

// bootstrap reads a list of brokers; one bad entry refuses the whole list.
func (b *builder) bootstrap(val value) []string {
	if val.Unresolved {
		return nil // without a value; said where it was looked up
	}
	var servers []string
	items := val.list()
	for i, item := range items {
		item = trim(item)
		if item == "" {
			if i == len(items)-1 && len(items) > 1 {
				continue // a comma at the end is harmless
			}
			b.errorf(val.Origin, "write host:port, separated by commas", "no broker in entry %d", i+1)
			continue
		}
		m := hostPort.FindStringSubmatch(item)
		if m == nil {
			hint := "write host:port"
			switch {
			case strings.HasPrefix(item, "="):
				hint = `a second "=" became part of the value; write one only`
			case strings.ContainsAny(item, " \t#;"):
				hint = "entries are separated by commas, and this format has no comments at the end of a line"
			case !strings.Contains(item, ":"):
				hint = "the port is missing: " + item + ":9092"
			}
			if isPlaceholder(item) { // reported as one
				continue
			}
			b.errorf(val.Origin, hint, "%q is not a broker", item)
			continue
		}
		if port, err := strconv.Atoi(m[2]); err != nil || port < 1 || port > 65535 {
			b.errorf(val.Origin, "ports go from 1 to 65535", "%q has no port that exists", item)
			continue
		}
		servers = append(servers, m[1]+":"+m[2])
	}
	if len(items) == 0 {
		b.errorf(val.Origin, "write host:port, separated by commas", "no broker is named")
	}
	return servers
}

func (b *builder) tls(v view) *TLS {
	t := &TLS{VerifyHostname: true, MinVersion: "TLSv1.2", MaxVersion: "TLSv1.3"}
	t.Truststore = Store{
		Type: v.word("ssl.truststore.type"), Location: b.location(v, "ssl.truststore.location"),
		Password:    v.secret("ssl.truststore.password"),
		Certificate: b.certificates(v, "ssl.truststore.certificates"),
	}
	t.Keystore = Store{
		Type: v.word("ssl.keystore.type"), Location: b.location(v, "ssl.keystore.location"),
		Password:    v.secret("ssl.keystore.password"),
		Certificate: b.certificates(v, "ssl.keystore.certificate.chain"),
		Key:         b.privateKey(v, "ssl.keystore.key"),
		KeyPassword: v.secret("ssl.key.password"),
	}
	for _, key := range []string{"ssl.truststore.type", "ssl.keystore.type"} {
		switch val := v[key]; strings.ToUpper(trim(val.Text)) {
		case "", "JKS", "PKCS12", "P12", "PEM":
		default:
			b.errorf(val.Origin, "use JKS, PKCS12 or PEM; convert others with keytool -importkeystore -deststoretype PKCS12",
				"store type %s cannot be read", trim(val.Text))
		}
	}
	if val, ok := v["ssl.endpoint.identification.algorithm"]; ok {
		switch strings.ToLower(trim(val.Text)) {
		case "https":
		case "":
			t.VerifyHostname = false
			b.warnf(val.Origin, "set it to https where the brokers' certificates name their hosts", "host names of this cluster's brokers are not checked")
		default:
			b.errorf(val.Origin, "https or nothing", "%q is not an algorithm of endpoint identification", trim(val.Text))
		}
	}
	t.MinVersion, t.MaxVersion = b.tlsVersions(v)
	return t
}

// tlsVersions is the range of versions to offer.
func (b *builder) tlsVersions(v view) (lowest, highest string) {
	known := []string{"TLSv1.2", "TLSv1.3"}
	enabled := known
	if val, ok := v["ssl.protocol"]; ok {
		switch name := trim(val.Text); name {
		case "TLSv1.2":
			enabled = known[:1]
		case "TLSv1.3", "TLS", "SSL", "": // newest first, in Java as well
		default:
			b.errorf(val.Origin, "TLSv1.3 or TLSv1.2", "%s is not offered any more", name)
		}
	}
	if val, ok := v["ssl.enabled.protocols"]; ok {
		enabled = nil
		for _, item := range val.list() {
			if slices.Contains(known, item) {
				enabled = append(enabled, item)
			} else {
				b.warnf(val.Origin, "TLSv1.2 and TLSv1.3 are offered", "%s is not offered any more", item)
			}
		}
		if len(enabled) == 0 {
			b.errorf(val.Origin, "add TLSv1.2 or TLSv1.3", "no TLS version is left")
			enabled = known
		}
	}
	slices.Sort(enabled)
	return enabled[0], enabled[len(enabled)-1]
}

// location is the path of a file, without what an escape made of it.
func (b *builder) location(v view, key string) string {
	val := v[key]
	s := trim(val.Text)
	if strings.ContainsAny(s, "\t\n\r\f") {
		b.errorf(val.Origin, `write "/" or "\\" for a backslash of a path`, `the path holds a control character: "\t", "\n", "\r" and "\f" are escapes`)
	}
	return s
}

var pemBlock = regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END ([A-Z0-9 ]+)-----`)

// normalPEM puts line ends back into PEM text that was joined into one line.
func normalPEM(s string) string {
	var out strings.Builder
	for _, m := range pemBlock.FindAllStringSubmatch(s, -1) {
		fmt.Fprintf(&out, "-----BEGIN %s-----\n", m[1])
		body := strings.Join(strings.Fields(m[2]), "")
		for len(body) > 64 {
			out.WriteString(body[:64] + "\n")
			body = body[64:]
		}
		fmt.Fprintf(&out, "%s\n-----END %s-----\n", body, m[3])
	}
	return out.String()
}

func (b *builder) certificates(v view, key string) string {
	val, ok := v[key]
	if !ok || trim(val.Text) == "" || val.Unresolved {
		return ""
	}
	text := normalPEM(val.Text)
	rest, found := []byte(text), 0
	for {
		block, next := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = next
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			b.errorf(val.Origin, "paste the certificate's PEM text, every line but the last ending in a backslash, or name a file in "+strings.TrimSuffix(strings.TrimSuffix(key, "certificates"), "certificate.chain")+"location",
				"block %d is not a valid certificate", found+1)
			return ""
		}
		found++
	}
	if found == 0 {
		b.errorf(val.Origin, "it must hold -----BEGIN CERTIFICATE-----, the body and -----END CERTIFICATE-----", "no valid certificate in it")
		return ""
	}
	return text
}

func (b *builder) privateKey(v view, key string) Secret {
	val, ok := v[key]
	if !ok || trim(val.Text) == "" || val.Unresolved {
		return Secret{}
	}
	text := normalPEM(val.Text)
	block, _ := pem.Decode([]byte(text))
	if block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		b.errorf(val.Origin, "it must hold a PEM block of type PRIVATE KEY or ENCRYPTED PRIVATE KEY", "no private key in it")
		return Secret{}
	}
	return NewSecret(text)
}

func (b *builder) sasl(v view, owner Origin) *SASL {
	mechanism, at := "GSSAPI", owner
	if val, ok := v["sasl.mechanism"]; ok {
		mechanism, at = strings.ToUpper(trim(val.Text)), val.Origin
	}
	if !slices.Contains(mechanisms, mechanism) {
		b.errorf(at, "one of "+strings.Join(mechanisms, ", "), "login mechanism %s is not supported", mechanism)
		return nil
	}
	s := &SASL{Mechanism: mechanism}
	val, ok := v["sasl.jaas.config"]
	if !ok {
		if mechanism == "AWS_MSK_IAM" {
			s.Credential = MSKIAM{}
			return s
		}
		b.errorf(at, "add sasl.jaas.config", "%s needs a login, and there is none", mechanism)
		return nil
	}
	if val.Unresolved {
		return nil // the reference has no value; that was said
	}
	modules, err := ParseJAAS(val.Text)
	switch {
	case err != nil:
		b.errorf(val.Origin, `write: <class> required name="value" ...;`, "the login cannot be read: %v", err)
		return nil
	case len(modules) > 1:
		b.errorf(val.Origin, "keep one", "it holds %d login modules", len(modules))
		return nil
	}
	s.Credential = b.credential(mechanism, modules[0], v, val.Origin)
	return s
}

// moduleMechanisms says which mechanisms a login module may serve.
var moduleMechanisms = map[string][]string{
	"PlainLoginModule":       {"PLAIN"},
	"ScramLoginModule":       {"SCRAM-SHA-256", "SCRAM-SHA-512"},
	"OAuthBearerLoginModule": {"OAUTHBEARER"},
	"Krb5LoginModule":        {"GSSAPI"},
	"IAMLoginModule":         {"AWS_MSK_IAM"},
}

// simpleName is a class without its package.
func simpleName(class string) string { return class[strings.LastIndex(class, ".")+1:] }

func (b *builder) credential(mechanism string, m LoginModule, v view, at Origin) Credential {
	module := simpleName(m.Class)
	serves, ok := moduleMechanisms[module]
	switch {
	case !ok:
		b.errorf(at, "PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule, Krb5LoginModule or IAMLoginModule",
			"login module %s is not known", m.Class)
		return nil
	case !slices.Contains(serves, mechanism):
		b.errorf(at, "for "+mechanism+" another login module is needed, or another sasl.mechanism: "+strings.Join(serves, ", "),
			"%s does not serve sasl.mechanism=%s", module, mechanism)
		return nil
	}
	for _, name := range []string{"username", "password", "clientId", "clientSecret"} {
		if isPlaceholder(m.Options[name]) {
			b.errorf(at, "fill in the template", "a placeholder is left in option %s", name)
		}
	}
	switch module {
	case "PlainLoginModule":
		b.wantOptions(m, at, "username", "password")
		return Plain{Username: m.Options["username"], Password: NewSecret(m.Options["password"])}
	case "ScramLoginModule":
		b.wantOptions(m, at, "username", "password")
		return Scram{
			Username: m.Options["username"], Password: NewSecret(m.Options["password"]),
			TokenAuth: strings.EqualFold(m.Options["tokenauth"], "true"),
		}
	case "OAuthBearerLoginModule":
		return b.oauth(m, v, at)
	case "Krb5LoginModule":
		return b.kerberos(m, v, at)
	default:
		return b.iam(m, at)
	}
}

// iam reads a login that needs nothing of the file. Profiles and roles would
// need AWS's own libraries.
func (b *builder) iam(m LoginModule, at Origin) Credential {
	for _, name := range []string{"awsProfileName", "awsRoleArn"} {
		if m.Options[name] != "" {
			b.errorf(at, "remove it, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY before the start",
				"option %s cannot be honoured: credentials are taken from the environment only", name)
		}
	}
	return MSKIAM{}
}

func (b *builder) wantOptions(m LoginModule, at Origin, names ...string) {
	for _, name := range names {
		if _, ok := m.Options[name]; !ok {
			b.errorf(at, fmt.Sprintf(`add %s="..."`, name), "%s needs the option %s", simpleName(m.Class), name)
		}
	}
}

var httpURL = regexp.MustCompile(`^(?i:https?)://[^/\s]+`)

func (b *builder) oauth(m LoginModule, v view, at Origin) Credential {
	o := OAuth{
		ClientID: m.Options["clientId"], ClientSecret: NewSecret(m.Options["clientSecret"]), Scope: m.Options["scope"],
		Extensions: map[string]string{}, TLS: map[string]string{},
	}
	for name, text := range m.Options {
		switch {
		case strings.HasPrefix(name, "extension_"):
			o.Extensions[strings.TrimPrefix(name, "extension_")] = text
		case strings.HasPrefix(name, "ssl."):
			o.TLS[name] = text
		case strings.HasPrefix(name, "unsecured"):
			b.errorf(at, "set sasl.oauthbearer.token.endpoint.url", "unsecured tokens (option %s) are not made here", name)
		}
	}
	endpoint, ok := v["sasl.oauthbearer.token.endpoint.url"]
	if !ok {
		b.errorf(at, "add it", "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url")
		return o
	}
	address := trim(endpoint.Text)
	if scheme, rest, _ := strings.Cut(address, ":"); strings.EqualFold(scheme, "file") {
		o.TokenFile = "/" + strings.TrimLeft(rest, "/")
		return o
	}
	if !httpURL.MatchString(address) {
		b.errorf(endpoint.Origin, "an https: or file: URL", "not a URL that tokens can be obtained from")
		return o
	}
	o.TokenEndpoint = address
	b.wantOptions(m, at, "clientId", "clientSecret")
	return o
}

func (b *builder) kerberos(m LoginModule, v view, at Origin) Credential {
	k := Kerberos{ServiceName: trim(v["sasl.kerberos.service.name"].Text), Principal: m.Options["principal"]}
	inJAAS := m.Options["serviceName"]
	switch {
	case k.ServiceName == "":
		k.ServiceName = inJAAS
	case inJAAS != "" && inJAAS != k.ServiceName:
		b.errorf(at, "keep one", "serviceName and sasl.kerberos.service.name differ")
	}
	if k.ServiceName == "" {
		b.errorf(at, "add sasl.kerberos.service.name = kafka", "GSSAPI needs the brokers' service name")
	}
	if strings.EqualFold(m.Options["useKeyTab"], "true") {
		k.Keytab = strings.TrimPrefix(m.Options["keyTab"], "file:")
		b.wantOptions(m, at, "keyTab", "principal")
	}
	if k.Keytab == "" {
		b.errorf(at, `add useKeyTab=true keyTab="..." principal="..."`, "Krb5LoginModule names no keytab, and the ticket cache is not read")
	}
	return k
}

// word is a trimmed string of the view.
func (v view) word(key string) string { return trim(v[key].Text) }

// secret is a trimmed secret of the view.
func (v view) secret(key string) Secret { return NewSecret(trim(v[key].Text)) }

// millis is a duration in milliseconds, unset where absent or not a number.
func (v view) millis(key string) Opt[time.Duration] {
	val, ok := v[key]
	if !ok {
		return Opt[time.Duration]{}
	}
	n, ok := val.integer(64)
	if !ok || n > int64(1<<62)/int64(time.Millisecond) {
		return Opt[time.Duration]{}
	}
	return Opt[time.Duration]{Value: time.Duration(n) * time.Millisecond, Set: true}
}

// int32 is a number, unset where absent or not one.
func (v view) int32(key string) Opt[int32] {
	val, ok := v[key]
	if !ok {
		return Opt[int32]{}
	}
	n, ok := val.integer(32)
	if !ok {
		return Opt[int32]{}
	}
	return Opt[int32]{Value: int32(n), Set: true}
}
