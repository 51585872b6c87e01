// Command heliograph replicates Apache Kafka topics, settings, ACLs and consumer
// group offsets between clusters. See docs/cli.md.
package main

import (
	"context"
	"os"

	"heliograph/internal/cli"
)

// version is the release, set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() {
	os.Exit(cli.Main(context.Background(), os.Args, cli.Stdio{
		Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version,
	}))
}
