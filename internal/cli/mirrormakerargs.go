package cli

import (
	"fmt"
	"path/filepath"
	"strings"
)

// mirrorMakerArgs is a command line in MirrorMaker's grammar.
type mirrorMakerArgs struct {
	File       string
	Clusters   []string // target clusters to serve; none given means all
	Help       bool
	Background bool // -daemon came first; MirrorMaker's script would have left the terminal
}

const mirrorMakerUsage = "usage: connect-mirror-maker [-h] [--clusters CLUSTER [CLUSTER ...]] mm2.properties\n"

const mirrorMakerHelp = mirrorMakerUsage + `
heliograph in MirrorMaker's place: the same file, the same arguments, the same
exit codes. For heliograph's own verbs, call this program heliograph.

positional arguments:
  mm2.properties         the configuration file

named arguments:
  -h, --help             show this help
  --clusters CLUSTER [CLUSTER ...]
                         serve only the flows into these clusters; takes every
                         word that follows, so the file comes first

exit codes: 255 bad command line, 2 bad file or a target that cannot be reached
at the start, 3 starting failed, 1 a flow broke for good, 143 after SIGTERM,
130 after SIGINT
`

// isMirrorMakerName reports whether the process was called as MirrorMaker is.
func isMirrorMakerName(arg0 string) bool {
	switch filepath.Base(arg0) {
	case "connect-mirror-maker", "connect-mirror-maker.sh":
		return true
	}
	return false
}

// mirrorMakerFlags are the long options, for abbreviations: MirrorMaker's parser
// takes any beginning that fits only one.
var mirrorMakerFlags = []string{"--help", "--clusters"}

// parseMirrorMakerArgs reads arguments as MirrorMaker does: --clusters takes all
// words up to the next option, "--clusters=B" takes one, the last one given
// wins, "--" ends the options, -daemon counts only as the first argument, and
// help is answered where it stands, before later errors.
func parseMirrorMakerArgs(args []string) (mirrorMakerArgs, error) {
	var m mirrorMakerArgs
	var words []string
	if len(args) > 0 && args[0] == "-daemon" {
		m.Background = true
		args = args[1:]
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			words = append(words, args...)
			break
		}
		if !isOption(arg) {
			words = append(words, arg)
			continue
		}
		name, value, embedded := strings.Cut(arg, "=")
		flag, err := mirrorMakerFlag(name)
		if err != nil {
			return m, err
		}
		if flag == "--help" {
			m.Help = true
			return m, nil
		}
		if embedded {
			m.Clusters = []string{value}
			continue
		}
		if m.Clusters, args = takeWords(args); len(m.Clusters) == 0 {
			return m, fmt.Errorf("argument --clusters: expected at least one argument")
		}
	}
	switch {
	case len(words) == 0 && len(m.Clusters) > 1:
		return m, fmt.Errorf("too few arguments: --clusters took every word after it; put the file first")
	case len(words) == 0:
		return m, fmt.Errorf("too few arguments: the file is missing")
	case len(words) > 1:
		return m, fmt.Errorf("unrecognized arguments: '%s'", strings.Join(words[1:], " "))
	}
	m.File = words[0]
	return m, nil
}

// isOption reports whether a word is an option. A lone dash and negative numbers are words.
func isOption(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && (arg[1] < '0' || arg[1] > '9')
}

// takeWords splits off the words before the next option.
func takeWords(args []string) (words, rest []string) {
	n := 0
	for n < len(args) && !isOption(args[n]) {
		n++
	}
	return args[:n], args[n:]
}

// mirrorMakerFlag finds the option that name is, or abbreviates.
func mirrorMakerFlag(name string) (string, error) {
	if name == "-h" {
		return "--help", nil
	}
	if strings.HasPrefix(name, "--") && len(name) > len("--") {
		for _, f := range mirrorMakerFlags {
			if strings.HasPrefix(f, name) {
				return f, nil
			}
		}
	}
	return "", fmt.Errorf("unrecognized arguments: '%s'", name)
}
