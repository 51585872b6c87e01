package config

import "regexp"

// placeholders are what templates hold where a value must be filled in.
var placeholders = regexp.MustCompile(
	`<[A-Za-z][A-Za-z0-9 _.-]*>` + // <target-host>
		`|\[[A-Z][A-Z0-9_ -]*\]` + // [IP_ADDRESS]
		`|\{\{[^{}]*\}\}` + // {{ host }}
		`|\$\{[A-Za-z_][A-Za-z0-9_]*\}` + // ${HOST}: not a provider's, and nothing expands it
		`|%[A-Z][A-Z0-9_]+%` + // %HOST%
		`|(?i:\b(?:change|replace|fill)[_-]?me(?:[_-]?in)?\b|\byour[_-][a-z0-9_-]+)` +
		`|\b(?:TODO|FIXME|XXX+)\b`)

// isPlaceholder says whether a template's placeholder is left in the text.
func isPlaceholder(s string) bool { return placeholders.MatchString(s) }

// placeholdersIn lists the placeholders of a text.
func placeholdersIn(s string) []string { return placeholders.FindAllString(s, -1) }
