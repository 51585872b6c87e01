// Command heliograph replicates Apache Kafka topics, settings, ACLs and consumer
// group offsets between clusters. See docs/cli.md.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"heliograph/internal/cli"
)

// version is the release, set by the linker: -ldflags "-X main.version=1.2.3".
var version string

// gcPercent lets the heap grow by half before it is collected, not to double.
// Record data lies in pooled blocks that the memory budget counts; what the
// collector waits for is kept on top of it. Measured on uncompressed data: 90 MB
// at the peak instead of 135, for no more processor time.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(cli.Main(context.Background(), os.Args, cli.Stdio{
		Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version,
	}))
}
