package config

import "log/slog"

// hidden is what stands for a secret wherever text is made of it.
const hidden = "[hidden]"

// Secret is a value that must not be shown: a password, a key, a token. Every
// way of turning it into text yields "[hidden]"; only [Secret.Reveal] yields
// the value. The zero Secret is no secret at all and prints as nothing.
type Secret struct{ value string }

// NewSecret hides value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.value }

// IsZero says that no secret was given.
func (s Secret) IsZero() bool { return s.value == "" }

// String hides the value.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return hidden
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value from every encoder that uses text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
