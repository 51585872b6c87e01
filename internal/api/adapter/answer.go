package adapter

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Answer writes a value as JSON, or failure with the status 500 where it has none. The
// headers are the caller's. <, > and & are written as they are, for people at terminals.
func Answer(w http.ResponseWriter, status int, value, failure any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		b.Reset()
		status = http.StatusInternalServerError
		_ = enc.Encode(failure) // made of texts, which have JSON
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who went away reads nothing
}
