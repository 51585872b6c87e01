package config

import (
	"fmt"
	"strings"
)

// Compatibility renders the table of docs/compatibility.md that tells of every key
// MirrorMaker reads what becomes of it here.
func Compatibility() string {
	var b strings.Builder
	b.WriteString("| key | here | how |\n|---|---|---|\n")
	for _, keys := range [][]Key{driverKeys, sourceKeys, checkpointKeys, heartbeatKeys, connectionKeys, workerKeys, frameworkKeys} {
		for i := range keys {
			k := &keys[i]
			verdict, how := k.compared()
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, verdict, strings.ReplaceAll(how, "|", `\|`))
		}
	}
	return b.String()
}

// compared is the key held against MirrorMaker's.
func (k *Key) compared() (verdict, how string) {
	switch {
	case k.Effect == Refused && len(k.Values) > 0:
		return "same, in part", "accepted: `" + strings.Join(k.Values, "`, `") + "`; refused otherwise: " + k.Why
	case k.Effect == Refused:
		return "absent", "refused: " + k.Why
	case k.Effect == NoEffect:
		return "different", "accepted, no effect: " + k.Why
	case k.Until != "":
		return "better", "MirrorMaker read it up to " + k.Until + " and ignores it since; honoured, with a warning"
	case k.Java != "" && k.Default == "":
		return "different", "its default there is `" + k.Java + "`"
	case k.Java != "":
		return "better", fmt.Sprintf("where the file is silent `%s` instead of `%s`", k.Default, k.Java)
	}
	return "same", ""
}
