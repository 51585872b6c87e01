package config

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Messages repeat what a file says, and files hold secrets at places where none
// belongs: a URL with a password, two lines that a lost line end made one, a
// key pasted without its backslashes, a reference at the wrong key. What follows
// takes them out of every text that leaves the package.

var (
	urlLogin = regexp.MustCompile(`(://)[^/@\s"]+@`)
	urlQuery = regexp.MustCompile(`(://[^\s?"]*)\?[^\s"]+`)
	// assigned is a secret's name with its value, as JAAS entries and properties
	// write it. A reference is not one, nor is "..." of a hint.
	assigned = regexp.MustCompile(`(?i)((?:password|passphrase|secret|token)\s*=\s*)(\\?"[^"]*"|'[^']*'|[^\s"',;]+)`)
	// blob is a line of PEM text.
	blob = regexp.MustCompile(`^[A-Za-z0-9+/]{24,}={0,2}$|^-----[A-Z ]+-----$`)
)

// redact hides what looks like a secret in a text for people.
func redact(s string) string {
	s = urlLogin.ReplaceAllString(s, "$1"+hidden+"@")
	s = urlQuery.ReplaceAllString(s, "$1?"+hidden)
	return assigned.ReplaceAllStringFunc(s, func(found string) string {
		m := assigned.FindStringSubmatch(found)
		if inner := strings.Trim(m[2], `\"'`); strings.Trim(inner, ".") == "" || hasReference(inner) || strings.HasPrefix(inner, hidden) {
			return found
		}
		return m[1] + hidden
	})
}

// isBlob says whether a key is a line of PEM text that the line before it should
// have continued onto.
func isBlob(key string) bool { return blob.MatchString(key) }

// shownKey is a key for people.
func shownKey(key string) string {
	if isBlob(key) {
		return hidden
	}
	return redact(key)
}

// stand is a text and the reference that it was put in for.
type stand struct{ text, reference string }

// conceal keeps the text that a reference stands for out of what is said about
// the key from now on.
func (r *report) conceal(key, text, reference string) {
	if r.concealed == nil {
		r.concealed = map[string][]stand{}
	}
	stands := r.concealed[key]
	for _, piece := range append(strings.Split(text, ","), text) {
		piece = trim(piece)
		quoted := strconv.Quote(piece)
		for _, form := range []string{piece, strings.ToUpper(piece), quoted[1 : len(quoted)-1]} {
			if len(form) > 2 { // less would be found in every word
				stands = append(stands, stand{form, reference})
			}
		}
	}
	slices.SortStableFunc(stands, func(a, b stand) int { return cmp.Compare(len(b.text), len(a.text)) })
	r.concealed[key] = stands
}

// sayable is a text about a key without secrets.
func (r *report) sayable(key, text string) string {
	for _, s := range r.concealed[key] {
		text = strings.ReplaceAll(text, s.text, s.reference)
	}
	return redact(text)
}
