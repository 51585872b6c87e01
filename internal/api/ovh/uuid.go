package ovh

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 9562 names it for UUIDs made from names; nothing is protected by it
	"encoding/hex"
	"regexp"
	"strings"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidPattern.MatchString(s) }

// namespace keeps our name-based ids apart from others'.
var namespace = [16]byte{0x6a, 0x1f, 0x5f, 0x0d, 0x3c, 0x52, 0x4e, 0x0b, 0x9b, 0x39, 0x0c, 0x0b, 0x6e, 0x28, 0xd4, 0x41}

// idOf is the id of a thing that has a name and no id of its own: always the same
// for the same words (RFC 9562, version 5).
func idOf(words ...string) string {
	h := sha1.New() //nolint:gosec // see the import
	h.Write(namespace[:])
	h.Write([]byte(strings.Join(words, "\x00")))
	return uuidText([16]byte(h.Sum(nil)[:16]), 5)
}

// newID is a random id (version 4).
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return uuidText(b, 4)
}

func uuidText(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return dashed(b)
}

func dashed(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
