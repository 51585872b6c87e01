//go:build bench

package main

import (
	"context"
	"fmt"
	"strings"

	"heliograph/internal/kafkatest"
)

// contender is one program in one configuration.
type contender struct {
	name  string
	short string   // begins its aliases
	lines []string // added to the common file; %s is the alias of the source
	start func(ctx context.Context, s stage, file string) (*kafkatest.Process, error)
}

func contenders(binary string) []contender {
	java := func(ctx context.Context, s stage, file string) (*kafkatest.Process, error) {
		return kafkatest.MirrorMaker(ctx, kafkatest.MirrorMakerOptions{
			Version: kafkatest.ReleaseTarget, File: file, Dir: s.dir, Name: s.alias,
			// What Kafka's own start script gives it.
			Heap: "2g", JVM: []string{"-Xms256m", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"},
		})
	}
	return []contender{
		{name: "heliograph", short: "helio", start: func(_ context.Context, s stage, file string) (*kafkatest.Process, error) {
			return kafkatest.StartProcess(kafkatest.ProcessSpec{
				Name: s.alias, Dir: s.dir, Path: binary, Args: []string{"run", file, "--admin-address", "off"},
			})
		}},
		{name: "MirrorMaker 2, defaults", short: "java", start: java},
		{name: "MirrorMaker 2, tuned", short: "tuned", start: java, lines: []string{
			"%s.consumer.max.poll.records = 20000",
			"%s.consumer.fetch.max.bytes = 104857600",
			"%s.consumer.max.partition.fetch.bytes = 10485760",
			"%s.consumer.fetch.min.bytes = 1048576",
			"T.producer.batch.size = 1000000",
			"T.producer.linger.ms = 50",
			"T.producer.buffer.memory = 134217728",
			"tasks.max = 4",
		}},
	}
}

// file is the configuration for one turn: the same for all but the contender's own lines.
func (c contender) file(s stage) []byte {
	lines := []string{
		fmt.Sprintf("clusters = %s, T", s.alias),
		fmt.Sprintf("%s.bootstrap.servers = %s", s.alias, s.source.Bootstrap()),
		"T.bootstrap.servers = " + s.target.Bootstrap(),
		fmt.Sprintf("%s->T.enabled = true", s.alias),
		fmt.Sprintf("T->%s.enabled = false", s.alias),
		fmt.Sprintf("%s->T.topics = %s", s.alias, sourceTopic),
	}
	for _, key := range []string{
		"replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
		"offset-syncs.topic.replication.factor", "offset.storage.replication.factor",
		"status.storage.replication.factor", "config.storage.replication.factor",
	} {
		lines = append(lines, key+" = 1")
	}
	for _, line := range c.lines {
		if strings.Contains(line, "%s") {
			line = fmt.Sprintf(line, s.alias)
		}
		lines = append(lines, line)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
