package cli

import (
	"testing"

	"heliograph/internal/config"
	"heliograph/internal/importer"
)

// TestSecretsFileIsReadAsItWasWritten holds the file against the reader of the file provider.
func TestSecretsFileIsReadAsItWasWritten(t *testing.T) {
	values := []string{"plain", ` two blanks before and a backslash \ `, "a\nb\tc\rd\fe", "#!=: ü€", `\u0041`}
	var secrets []importer.Secret
	for i, v := range values {
		secrets = append(secrets, importer.Secret{Name: "NAME_" + string(rune('A'+i)), Setting: "A.ssl.key.password", Value: config.NewSecret(v)})
	}
	entries, problems := config.ParseProperties("secrets.properties", secretsFile(secrets))
	if problems.HasErrors() || len(entries) != len(values) {
		t.Fatalf("%d entries: %v", len(entries), problems)
	}
	for i, e := range entries {
		if e.Key != secrets[i].Name || e.Value != values[i] {
			t.Errorf("%q became %s=%q", values[i], e.Key, e.Value)
		}
	}
}
