package ovh

import (
	"fmt"
	"strings"

	"heliograph/internal/api/jsonobject"
)

// body is the object of a request, with the kinds of fields that OVHcloud has.
type body struct{ *jsonobject.Object }

// uuid is an id that must be there.
func (b body) uuid(name string) string {
	v := b.Required(name)
	if v != "" && !isUUID(v) {
		b.Fail(name, "given data (%q) is not valid for type uuid", v)
	}
	return strings.ToLower(v)
}

func badRequest(format string, args ...any) *Error {
	return &Error{Status: 400, Class: "Client::BadRequest", Message: fmt.Sprintf(format, args...)}
}
