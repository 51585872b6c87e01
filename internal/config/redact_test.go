package config

import (
	"strings"
	"testing"
)

const treasure = "S3CR3T"

// told is everything that a load says to people.
func told(d *Deployment) string {
	var b strings.Builder
	for _, p := range d.Problems {
		b.WriteString(p.String() + "\n")
	}
	for i := range d.Flows {
		for _, s := range d.Flows[i].Effective() {
			b.WriteString(s.Key + " = " + s.Value + "\n")
		}
	}
	return b.String()
}

// TestReferencesAreNeverToldByWhatTheyStandFor puts a reference to a secret at
// every key there is, in values that every rule for that key refuses.
func TestReferencesAreNeverToldByWhatTheyStandFor(t *testing.T) {
	var names []string
	for _, k := range Catalogue() {
		// Aliases become part of names, and a separator as well.
		if k.Name != "clusters" && k.Name != "replication.policy.separator" {
			names = append(names, strings.ReplaceAll(k.Name, "*", "x"))
		}
	}
	for _, k := range ClientKeys() {
		names = append(names, k.Name)
	}
	for _, secret := range []string{treasure, treasure + "[", "a:1,=" + treasure, "CHANGE_ME_" + treasure, "x\t" + treasure, "-1" + treasure, "true # " + treasure} {
		for _, prefix := range []string{"", "A.", "A->B.", "A->B.source.consumer.", "A->B.source.cluster."} {
			var file strings.Builder
			file.WriteString("clusters = A, B\nB.bootstrap.servers = b:1\nA->B.enabled = true\nconfig.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n")
			for _, name := range names {
				if key := prefix + name; key != "A->B.enabled" && !strings.HasPrefix(key, "config.providers") {
					file.WriteString(key + " = ${env:X}\n")
				}
			}
			d := Load(Source{Name: "f", Bytes: []byte(file.String()), LookupEnv: func(string) (string, bool) { return secret, true }})
			for line := range strings.Lines(told(d)) {
				if strings.Contains(strings.ToUpper(line), treasure) {
					t.Errorf("%q: %s", secret, line)
				}
			}
		}
	}
}

func TestSecretsAtPlacesWhereNoneBelongsAreNotTold(t *testing.T) {
	const oauth = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = OAUTHBEARER\n" +
		"A.sasl.jaas.config = OAuthBearerLoginModule required clientId=c clientSecret=d;\n"
	tests := []struct{ name, file, lines string }{
		{"login in a URL", "f", oauth + "A.sasl.oauthbearer.token.endpoint.url = https://u:S3CR3T@host/token"},
		{"key in a URL", "f", oauth + "A.sasl.oauthbearer.token.endpoint.url = https://host/token?key=S3CR3T"},
		{"line end lost", "f", "A.security.protocol = SASL_SSLA.sasl.jaas.config = PlainLoginModule required username=u password=\"S3CR3T\";"},
		{"line end lost before a password", "f", "A.security.protocol = SSL\nA.ssl.truststore.location = /xA.ssl.truststore.password = S3CR3T"},
		{"PEM without backslashes", "f", "A.ssl.keystore.key = -----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwS3CR3T\n-----END PRIVATE KEY-----"},
		{"quote too many", "f", "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = PlainLoginModule required username=\"u\"\" password=\"S3CR3T\";"},
		{"YAML that is none", "f.yaml", "clusters:\n  A:\n    ssl:\n      key.password: |x  S3CR3T\n"},
		{"YAML with a tab", "f.yaml", "clusters:\n  A:\n    ssl.key.password: \"S3CR3T\n"},
	}
	for _, tt := range tests {
		text := base + tt.lines + "\n"
		if tt.file != "f" {
			text = tt.lines
		}
		got := told(Load(Source{Name: tt.file, Bytes: []byte(text)}))
		if strings.Contains(got, treasure) || got == "" {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

func TestRedactLeavesTheRest(t *testing.T) {
	for _, s := range []string{
		`add password="..."`, "password = ${env:P}", `A.sasl.jaas.config: PLAIN needs a login`,
		"did you mean A.ssl.key.password?", "https://host:1/token", "${file:/run/secret:key}",
	} {
		if got := redact(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
