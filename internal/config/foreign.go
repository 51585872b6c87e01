package config

import (
	"bytes"
	"regexp"
)

var (
	jsonConnector  = regexp.MustCompile(`"connector\.class"\s*:\s*"([^"]*)"`)
	restShape      = regexp.MustCompile(`"config"\s*:\s*\{`)
	strimziKind    = regexp.MustCompile(`(?m)^kind:\s*"?(Kafka[A-Za-z0-9]*)"?\s*$`)
	strimziVersion = regexp.MustCompile(`(?m)^apiVersion:\s*"?kafka\.strimzi\.io/`)
)

// plainJSON may be the native form too: JSON is YAML.
const plainJSON = "JSON"

// recognise names a file that belongs to another tool, or returns "".
func recognise(data []byte) string {
	switch text := bytes.TrimLeft(data, "\xEF\xBB\xBF \t\r\n"); {
	case strimziVersion.Match(data):
		kind := "resource"
		if m := strimziKind.FindSubmatch(data); m != nil {
			kind = string(m[1])
		}
		return "a Strimzi " + kind + " for Kubernetes"
	case bytes.HasPrefix(text, []byte("{")):
		m := jsonConnector.FindSubmatch(data)
		switch {
		case m == nil:
			return plainJSON
		case restShape.Match(data):
			return "a request that creates a Kafka Connect connector (" + simpleName(string(m[1])) + ") over REST"
		default:
			return "the JSON configuration of a Kafka Connect connector (" + simpleName(string(m[1])) + ")"
		}
	}
	return ""
}
