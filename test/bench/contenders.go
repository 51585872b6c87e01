//go:build bench

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"heliograph/internal/kafkatest"
)

// The contenders' short names, which begin their aliases.
const (
	helio    = "helio"
	defaults = "java"
	tuned    = "tuned"
	loop     = "loop"
	relay    = "relay"
	direct   = "direct"
)

// contender is one program in one configuration.
type contender struct {
	short, name string
	lines       []string // added to the common file; %s is the alias of the source
	// start runs it on a stage whose configuration lies in file.
	start func(ctx context.Context, s stage, file string) (*kafkatest.Process, error)
}

func contenders(o options) []contender {
	java := func(ctx context.Context, s stage, file string) (*kafkatest.Process, error) {
		return kafkatest.MirrorMaker(ctx, kafkatest.MirrorMakerOptions{
			Version: kafkatest.ReleaseTarget, File: file, Dir: s.dir, Name: s.alias,
			// What Kafka's own start script gives it.
			Heap: "2g", JVM: []string{"-Xms256m", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"},
		})
	}
	return []contender{
		{short: helio, name: "heliograph", start: func(_ context.Context, s stage, file string) (*kafkatest.Process, error) {
			args := []string{"run", file, "--admin-address", "off"}
			if o.profiles != "" {
				args = []string{"run", file, "--admin-address", profileAddress, "--pprof"}
			}
			return kafkatest.StartProcess(kafkatest.ProcessSpec{Name: s.alias, Dir: s.dir, Path: o.binary, Args: args})
		}},
		{short: defaults, name: "MirrorMaker 2, defaults", start: java},
		{short: tuned, name: "MirrorMaker 2, tuned", start: java, lines: []string{
			"%s.consumer.max.poll.records = 20000",
			"%s.consumer.fetch.max.bytes = 104857600",
			"%s.consumer.max.partition.fetch.bytes = 10485760",
			"%s.consumer.fetch.min.bytes = 1048576",
			"T.producer.batch.size = 1000000",
			"T.producer.linger.ms = 50",
			"T.producer.buffer.memory = 134217728",
			"tasks.max = 4",
		}},
		{short: loop, name: "franz-go loop", start: startLoop},
		{short: relay, name: "TCP relay", start: nil},
	}
}

// startLoop runs this program itself as the loop, in a process of its own.
func startLoop(ctx context.Context, s stage, _ string) (*kafkatest.Process, error) {
	if err := s.target.MakeTopic(ctx, s.remoteTopic(), int32(s.parts), nil); err != nil {
		return nil, err
	}
	args := []string{
		"-role", loop, "-from", s.source.BootstrapOf(s.protocol()), "-to", s.target.BootstrapOf(s.protocol()),
		"-topic", s.topic, "-copy", s.remoteTopic(), "-codec", s.codec,
	}
	if s.secured {
		args = append(args, "-ca-from", s.source.Certificates().CAPEM, "-ca-to", s.target.Certificates().CAPEM)
	}
	return s.startRole(args...)
}

func (s stage) startRole(args ...string) (*kafkatest.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return kafkatest.StartProcess(kafkatest.ProcessSpec{Name: s.alias, Dir: s.dir, Path: self, Args: args})
}

// file is the configuration for one turn: the same for all but the contender's own lines.
func (c contender) file(s stage) []byte {
	lines := []string{
		fmt.Sprintf("clusters = %s, T", s.alias),
		fmt.Sprintf("%s->T.enabled = true", s.alias),
		fmt.Sprintf("T->%s.enabled = false", s.alias),
		fmt.Sprintf("%s->T.topics = %s", s.alias, strings.Join(append([]string{s.topic}, s.idle...), ",")),
	}
	for alias, cluster := range map[string]*kafkatest.Cluster{s.alias: s.source, "T": s.target} {
		client := cluster.ClientProperties(s.protocol(), "", "")
		for _, key := range slices.Sorted(maps.Keys(client)) {
			lines = append(lines, fmt.Sprintf("%s.%s = %s", alias, key, client[key]))
		}
	}
	copies := min(len(s.target.Brokers()), 3)
	for _, key := range []string{
		"replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
		"offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor",
	} {
		lines = append(lines, fmt.Sprintf("%s = %d", key, copies))
	}
	lines = append(lines, "offset-syncs.topic.replication.factor = 1") // it lies on the source
	for _, line := range c.lines {
		if strings.Contains(line, "%s") {
			line = fmt.Sprintf(line, s.alias)
		}
		lines = append(lines, line)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
