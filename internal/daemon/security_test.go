package daemon

import (
	"testing"

	"heliograph/internal/config"
)

// A token in a file is handed on as the URL that the client takes.
func TestATokenFileIsAnAddress(t *testing.T) {
	s, err := security(config.Connection{Protocol: "SASL_SSL", SASL: &config.SASL{
		Mechanism: "OAUTHBEARER", Credential: config.OAuth{TokenFile: "/run/my tokens/token"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.SASL.OAuth.TokenEndpoint, "file:///run/my%20tokens/token"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
