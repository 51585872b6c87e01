//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// lessonFile is what a beginner's lesson on MirrorMaker 2 tells people to write,
// word for word. Only the ports are put in.
const lessonFile = `# mm2.properties

# Define cluster aliases
clusters = A, B

# Connection info for source cluster 'A'
A.bootstrap.servers = localhost:9092

# Connection info for target cluster 'B'
B.bootstrap.servers = localhost:9093

# Enable replication from A to B
A->B.enabled = true

# Replicate all topics from A to B
A->B.topics = .*

# For this lab, we'll disable the default topic prefixing.
# This makes consumer failover simpler to observe, but as we discussed,
# it's risky in active-active setups.
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy

# --- Internal Topic Settings for a Lab Environment ---
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1`

// TestLesson walks through the lesson as a user would: Kafka's own tools make,
// write, read and look; heliograph stands in MirrorMaker's place. It has two
// clusters of its own, because the lesson copies all topics and stops a cluster.
func TestLesson(t *testing.T) {
	t.Parallel()
	l := &lesson{
		T: t,
		a: kafkatest.Start(t, kafkatest.ClusterOptions{Name: "lesson-A", Version: kafkatest.ReleaseSource}),
		b: kafkatest.Start(t, kafkatest.ClusterOptions{Name: "lesson-B", Version: kafkatest.ReleaseTarget}),
	}
	l.write(lessonFile)
	h := start(t, l.file)

	// As in the lesson: the topic is made and shows up on B, then messages do.
	l.tool(l.a, "TopicCommand", "--create", "--topic", "orders", "--partitions", "1", "--replication-factor", "1")
	await(t, "B lists orders beside the internal topics", func() string {
		listed := strings.Fields(l.tool(l.b, "TopicCommand", "--list"))
		for _, want := range []string{"orders", "heartbeats", "A.checkpoints.internal", "mm2-offsets.A.internal"} {
			if !slices.Contains(listed, want) {
				return fmt.Sprintf("no %s among %v", want, listed)
			}
		}
		return ""
	})
	l.send(`{"order_id": 101, "amount": 150.00}`, `{"order_id": 102, "amount": 75.50}`)
	l.read(l.b, "")

	// A group's place on A is usable on B: reading goes on behind what it has read.
	if got := l.consume(l.a, "billing", 2); len(got) != 2 {
		t.Fatalf("group billing read %q on A", got)
	}
	await(t, "group billing has a checkpoint on B", func() string {
		for _, c := range readCheckpoints(t, l.b, "A.checkpoints.internal") {
			if c.Group == "billing" && c.TopicPartition == (kafka.TopicPartition{Topic: "orders"}) && c.Downstream == 2 {
				return ""
			}
		}
		return "no checkpoint for offset 2"
	})

	// Stopped and started again: nothing missing, nothing twice.
	h.stop()
	l.send("while heliograph is down")
	l.write(lessonFile + "\nsync.group.offsets.enabled = true\nsync.group.offsets.interval.seconds = 1\n")
	h = start(t, l.file)
	l.read(l.b, "")
	await(t, "group billing stands on B", func() string {
		out := l.tool(l.b, "ConsumerGroupCommand", "--describe", "--group", "billing")
		if fields := strings.Fields(lineWith(out, "orders")); len(fields) > 3 && fields[3] == "2" {
			return ""
		}
		return out
	})
	l.read(l.b, "billing")

	// A is stopped and started while heliograph runs: it catches up by itself.
	if err := l.a.Broker(1).Stop(); err != nil {
		t.Fatal(err)
	}
	h.awaitLog("WARN", "A->B")
	if err := l.a.Broker(1).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.send("after A came back", "and once more")
	l.read(l.b, "")
	h.awaitState("A->B", "running")
	h.stop()
	l.read(l.b, "")
	same(t, kafkatest.Side{Cluster: l.a, Topic: "orders"}, kafkatest.Side{Cluster: l.b, Topic: "orders"})
}

// lesson is the terminal of somebody who follows it.
type lesson struct {
	*testing.T
	a, b *kafkatest.Cluster
	file string
	sent []string // to orders on A, in order
}

// write puts the ports into the file of the lesson.
func (l *lesson) write(text string) {
	l.Helper()
	text = strings.Replace(text, "localhost:9092", localhost(l.T, l.a.Bootstrap()), 1)
	text = strings.Replace(text, "localhost:9093", localhost(l.T, l.b.Bootstrap()), 1)
	l.file = writeFile(l.T, text)
}

// localhost writes an address as the lesson does.
func localhost(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}

// tool runs one of the cluster's own tools.
func (l *lesson) tool(c *kafkatest.Cluster, tool string, args ...string) string {
	l.Helper()
	out, err := kafkatest.Tool(l.Context(), c.Version(), tool, append([]string{"--bootstrap-server", c.Bootstrap()}, args...)...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// send types messages into the console producer on A.
func (l *lesson) send(lines ...string) {
	l.Helper()
	_, err := kafkatest.ToolWithInput(l.Context(), l.a.Version(), strings.Join(lines, "\n")+"\n", "ConsoleProducer",
		"--bootstrap-server", l.a.Bootstrap(), "--topic", "orders")
	if err != nil {
		l.Fatal(err)
	}
	l.sent = append(l.sent, lines...)
}

// read reads orders on a cluster with the console consumer: all of it, or what
// is left for the group billing, which has read two. It must be what was sent, in order.
func (l *lesson) read(c *kafkatest.Cluster, group string) {
	l.Helper()
	want := l.sent
	if group != "" {
		want = want[2:]
	}
	c.AwaitRecords(within(l.T, patience), l.T, "orders", len(l.sent))
	if got := l.consume(c, group, len(want)); !slices.Equal(got, want) {
		l.Fatalf("read on cluster %s: %q, want %q", c.Name(), got, want)
	}
}

// consume reads so many messages with the console consumer.
func (l *lesson) consume(c *kafkatest.Cluster, group string, count int) []string {
	l.Helper()
	args := []string{"--topic", "orders", "--max-messages", fmt.Sprint(count), "--timeout-ms", "60000"}
	if group == "" {
		args = append(args, "--from-beginning")
	} else {
		args = append(args, "--group", group, "--from-beginning")
	}
	return strings.Split(strings.TrimSpace(l.tool(c, "ConsoleConsumer", args...)), "\n")
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}
