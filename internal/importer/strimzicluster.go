package importer

import (
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// strimziCluster is one Kafka cluster of a resource.
type strimziCluster struct {
	alias    string
	settings []setting // brokers, certificates, login
	config   []setting // spec.*.config: the worker's for the target
	source   bool      // a mirror copies from it
}

// cluster reads a cluster in the shape of both versions; target has the worker's
// names beside it.
func (r *strimziReader) cluster(o *reading) strimziCluster {
	c := strimziCluster{alias: o.used("alias", "clusters")}
	add := func(key, value string, from origin) {
		s := setting{key: key, value: value, from: from, verdict: Kept}
		if strings.Contains(value, mountMark) {
			s.verdict = Changed
			s.because("it is read from the mounted secret")
		}
		c.settings = append(c.settings, s)
	}
	if servers, ok := o.text("bootstrapServers"); ok {
		add("bootstrap.servers", servers, o.place("bootstrapServers"))
	} else {
		o.d.missing(o.place("bootstrapServers"), "the cluster has no brokers")
	}
	for _, worker := range []struct{ field, key string }{
		{"groupId", "group.id"},
		{"configStorageTopic", "config.storage.topic"},
		{"offsetStorageTopic", "offset.storage.topic"},
		{"statusStorageTopic", "status.storage.topic"},
	} {
		if text, ok := o.text(worker.field); ok {
			c.config = append(c.config, setting{key: worker.key, value: text, from: o.place(worker.field), verdict: Kept})
		}
	}
	login := &strimziLogin{strimziReader: r, add: add}
	if tls := o.get("tls"); tls != nil {
		login.tls = true
		login.trust(r.open(tls, o.place("tls")))
	}
	if auth := o.get("authentication"); auth != nil {
		login.authentication(r.open(auth, o.place("authentication")))
	}
	protocol := map[[2]bool]string{{false, false}: "", {true, false}: "SSL", {false, true}: "SASL_PLAINTEXT", {true, true}: "SASL_SSL"}[[2]bool{login.tls, login.sasl}]
	own := r.flat(o.get("config"), o.place("config"))
	if protocol != "" && !slices.ContainsFunc(own, func(s setting) bool { return s.key == "security.protocol" }) {
		c.settings = append(c.settings, setting{key: "security.protocol", value: protocol, from: o.at, verdict: Added, why: []string{"what tls and authentication mean together"}})
	}
	c.config = append(c.config, own...)
	o.rest()
	return c
}

// strimziLogin makes client settings of tls and authentication.
type strimziLogin struct {
	*strimziReader
	add       func(key, value string, from origin)
	tls, sasl bool
}

// trust reads tls. Without certificates the system's authorities are trusted.
func (l *strimziLogin) trust(o *reading) {
	if text := l.certificates(o, "trustedCertificates"); text != "" {
		l.add("ssl.truststore.type", "PEM", o.place("trustedCertificates"))
		l.add("ssl.truststore.certificates", text, o.place("trustedCertificates"))
	}
	o.rest()
}

// certificates are references to all trusted certificates of a list, one after the other.
func (l *strimziLogin) certificates(o *reading, field string) string {
	var refs []string
	items, places := o.list(field)
	for i, item := range items {
		c := l.open(item, places[i])
		secret, ok := c.text("secretName")
		file, single := c.text("certificate")
		if pattern, ok := c.text("pattern"); ok && !single {
			file = "ca.crt"
			l.missing(c.place("pattern"), fmt.Sprintf("%s may name several files and a reference names one: ca.crt of Secret %s is taken, which Strimzi's own secrets have; write a reference for each other one", oneLine(pattern), oneLine(secret)))
		}
		if !ok || file == "" {
			l.missing(places[i], "secretName and certificate must be there")
		} else {
			refs = append(refs, l.reference(secret, file))
		}
		c.rest()
	}
	return strings.Join(refs, "\n")
}

// secret is a reference to the value that a field names; keyed is the name of
// the field that holds the key within the secret.
func (l *strimziLogin) secret(o *reading, field, keyed string) (string, bool) {
	n := o.get(field)
	if n == nil {
		return "", false
	}
	s := l.open(n, o.place(field))
	defer s.rest()
	name, _ := s.text("secretName")
	key, _ := s.text(keyed)
	if name == "" || key == "" {
		l.missing(s.at, "secretName and "+keyed+" must be there")
		return "", false
	}
	return l.reference(name, key), true
}

const modules = "org.apache.kafka.common.security."

func (l *strimziLogin) authentication(o *reading) {
	kind, _ := o.text("type")
	at := o.place("type")
	switch kind {
	case "tls":
		l.clientCertificate(o)
	case "plain":
		l.password(o, "PLAIN", modules+"plain.PlainLoginModule")
	case "scram-sha-512", "scram-sha-256":
		l.password(o, strings.ToUpper(kind), modules+"scram.ScramLoginModule")
	case "oauth":
		l.oauth(o)
	case "custom":
		sasl, _ := o.text("sasl")
		l.sasl = strings.EqualFold(sasl, "true")
		for _, s := range l.flat(o.get("config"), o.place("config")) {
			l.add(s.key, s.value, s.from)
		}
	default:
		l.missing(at, fmt.Sprintf("authentication of type %q is not known", kind))
	}
	o.rest()
}

func (l *strimziLogin) clientCertificate(o *reading) {
	n := o.get("certificateAndKey")
	at := o.place("certificateAndKey")
	c := l.open(n, at)
	defer c.rest()
	secret, _ := c.text("secretName")
	certificate, _ := c.text("certificate")
	key, _ := c.text("key")
	if secret == "" || certificate == "" || key == "" {
		l.missing(at, "secretName, certificate and key must be there")
		return
	}
	l.add("ssl.keystore.type", "PEM", at)
	l.add("ssl.keystore.certificate.chain", l.reference(secret, certificate), at)
	l.add("ssl.keystore.key", l.reference(secret, key), at)
}

func (l *strimziLogin) password(o *reading, mechanism, class string) {
	l.sasl = true
	user, _ := o.text("username")
	if user != "" {
		l.changed(o.place("username"), "sasl.jaas.config", "")
	}
	ref, ok := l.secret(o, "passwordSecret", "password")
	if user == "" || !ok {
		l.missing(o.at, "username and passwordSecret must be there")
	}
	l.add("sasl.mechanism", mechanism, o.place("type"))
	l.add("sasl.jaas.config", jaas(config.LoginModule{Class: class, Flag: "required", Options: map[string]string{"username": user, "password": ref}}), o.place("passwordSecret"))
}

// oauth reads the login of Strimzi's own OAuth library, which ended with v1.
func (l *strimziLogin) oauth(o *reading) {
	l.sasl = true
	l.add("sasl.mechanism", "OAUTHBEARER", o.place("type"))
	m := config.LoginModule{Class: modules + "oauthbearer.OAuthBearerLoginModule", Flag: "required", Options: map[string]string{}}
	for _, name := range []string{"clientId", "scope"} { // the library's names are Kafka's
		if text, ok := o.text(name); ok {
			m.Options[name] = text
			l.changed(o.place(name), "sasl.jaas.config", "")
		}
	}
	if ref, ok := l.secret(o, "clientSecret", "key"); ok {
		m.Options["clientSecret"] = ref
	}
	const endpoint = "sasl.oauthbearer.token.endpoint.url"
	if text, ok := o.text("tokenEndpointUri"); ok {
		l.add(endpoint, text, o.place("tokenEndpointUri"))
	}
	if text, ok := o.text("accessTokenLocation"); ok {
		l.add(endpoint, "file:"+text, o.place("accessTokenLocation"))
	}
	if n := o.get("accessToken"); n != nil {
		token := l.open(n, o.place("accessToken"))
		secret, _ := token.text("secretName")
		key, _ := token.text("key")
		l.reference(secret, key)
		l.add(endpoint, "file:"+l.mount+"/"+secret+"/"+key, token.at)
		token.rest()
	}
	for _, s := range l.flat(o.get("saslExtensions"), o.place("saslExtensions")) {
		m.Options["extension_"+s.key] = s.value
		l.changed(s.from, "sasl.jaas.config", "")
	}
	if text := l.certificates(o, "tlsTrustedCertificates"); text != "" {
		m.Options["ssl.truststore.certificates"] = text
	}
	for _, field := range []string{"audience", "username", "passwordSecret", "refreshToken", "clientAssertion", "clientAssertionLocation", "clientAssertionType", "grantType"} {
		if o.get(field) != nil {
			l.missing(o.place(field), "tokens are obtained with client id and secret only, or read from a file")
		}
	}
	if text, _ := o.text("disableTlsHostnameVerification"); strings.EqualFold(text, "true") {
		l.missing(o.place("disableTlsHostnameVerification"), "the host name of a token endpoint is always checked")
	}
	o.idle("tokens are obtained and renewed by heliograph's own rule", "maxTokenExpirySeconds", "accessTokenIsJwt", "connectTimeoutSeconds", "readTimeoutSeconds",
		"httpRetries", "httpRetryPauseMs", "enableMetrics", "includeAcceptHeader")
	l.add("sasl.jaas.config", jaas(m), o.at)
}
