package config

import (
	"testing"

	"heliograph/internal/mirror"
)

// A sample of a pattern without look-around must match it.
func TestSamplesMatchTheirPatterns(t *testing.T) {
	for _, pattern := range []string{
		".*", "orders", "a|b|c", "[a-c]+", "x{2,4}y?", "(?:app|job)-[a-z]++", "[^a-z]1", `t\d+`, "[q-z]{2}7", "(a(b|c)){2}", "[[:upper:]_]{3}", `\.+`, "^abc$",
	} {
		patterns, err := mirror.CompilePatterns([]string{pattern})
		if err != nil {
			continue // refused by the filters, so never sampled
		}
		for repeat := range 4 {
			if s, ok := sample(pattern, repeat); !ok || !patterns.Match(s) {
				t.Errorf("%s, %d: %q does not match", pattern, repeat, s)
			}
		}
	}
}
