package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	internalListener   = "INTERNAL"
	controllerListener = "CONTROLLER"
	// controllerID is the node id of a controller beside the brokers, out of their way.
	controllerID = 1000
)

// newClusterID makes the 22-character id that the format tool wants.
func newClusterID() string {
	var raw [16]byte
	rand.Read(raw[:])
	// A leading dash would read as a flag.
	raw[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// common are the settings of small, quick clusters. Topics that the brokers make
// for themselves are small, the cleaner looks often, nothing waits.
func (c *Cluster) common() map[string]string {
	copies := strconv.Itoa(min(c.opts.Brokers, 3))
	props := map[string]string{
		"offsets.topic.replication.factor":         copies,
		"offsets.topic.num.partitions":             "5",
		"transaction.state.log.replication.factor": copies,
		"transaction.state.log.min.isr":            "1",
		"transaction.state.log.num.partitions":     "5",
		"group.initial.rebalance.delay.ms":         "0",
		"auto.create.topics.enable":                "false",
		"log.retention.ms":                         "-1", // records of tests have times years back
		"log.cleaner.backoff.ms":                   "300",
		"log.cleaner.dedupe.buffer.size":           "16777216",
		"log.cleaner.threads":                      "1",
		"num.network.threads":                      "2",
		"num.io.threads":                           "4",
		"controlled.shutdown.enable":               "true",
	}
	if c.release.atLeast(3, 9) {
		props["share.coordinator.state.topic.replication.factor"] = copies
		props["share.coordinator.state.topic.min.isr"] = "1"
	}
	return props
}

// properties is the broker's server.properties.
func (b *Broker) properties() []byte {
	c := b.cluster
	props := c.common()
	listeners := []string{internalListener + "://" + loopback(b.internal)}
	advertised := slices.Clone(listeners)
	protocols := []string{internalListener + ":PLAINTEXT"}
	for _, p := range c.opts.Listeners {
		listeners = append(listeners, string(p)+"://"+loopback(b.ports[p]))
		advertised = append(advertised, string(p)+"://"+b.Addr(p))
		protocols = append(protocols, string(p)+":"+string(p))
	}
	if c.release.kraft() {
		props["node.id"] = strconv.Itoa(int(b.id))
		props["process.roles"] = "broker"
		props["controller.listener.names"] = controllerListener
		props["controller.quorum.voters"] = c.quorum()
		protocols = append(protocols, controllerListener+":PLAINTEXT")
		if b.control != 0 {
			props["process.roles"] = "broker,controller"
			listeners = append(listeners, controllerListener+"://"+loopback(b.control))
		}
	} else {
		props["broker.id"] = strconv.Itoa(int(b.id))
		props["zookeeper.connect"] = c.headAt
		props["zookeeper.session.timeout.ms"] = "4000"
	}
	props["listeners"] = strings.Join(listeners, ",")
	props["advertised.listeners"] = strings.Join(advertised, ",")
	props["listener.security.protocol.map"] = strings.Join(protocols, ",")
	props["inter.broker.listener.name"] = internalListener
	props["log.dirs"] = b.dataDir
	if i := int(b.id) - 1; i < len(c.opts.Racks) {
		props["broker.rack"] = c.opts.Racks[i]
	}
	c.secure(props)
	return render(props, c.opts.Properties)
}

// quorum names the one voter: the controller beside the brokers, or the only broker.
func (c *Cluster) quorum() string {
	if c.headAt != "" {
		return fmt.Sprintf("%d@%s", controllerID, c.headAt)
	}
	return fmt.Sprintf("%d@%s", c.brokers[0].id, loopback(c.brokers[0].control))
}

// startHead starts what the brokers need beside them: ZooKeeper for old
// releases, a controller for several KRaft brokers, nothing for a single one.
func (c *Cluster) startHead(ctx context.Context) error {
	if c.release.kraft() && c.opts.Brokers == 1 {
		return nil
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	c.headAt = loopback(port)
	if c.release.kraft() {
		return c.startController(ctx)
	}
	return c.startZooKeeper(ctx, port)
}

func (c *Cluster) startController(ctx context.Context) error {
	props := c.common()
	props["node.id"] = strconv.Itoa(controllerID)
	props["process.roles"] = "controller"
	props["controller.listener.names"] = controllerListener
	props["controller.quorum.voters"] = c.quorum()
	props["listeners"] = controllerListener + "://" + c.headAt
	props["listener.security.protocol.map"] = controllerListener + ":PLAINTEXT," + internalListener + ":PLAINTEXT"
	props["log.dirs"] = filepath.Join(c.dir, "data-controller")
	c.secure(props)
	path := c.controllerProps()
	if err := os.WriteFile(path, render(props, c.opts.Properties), 0o600); err != nil {
		return err
	}
	if err := c.format(ctx, path); err != nil {
		return err
	}
	return c.runHead("controller", "kafka.Kafka", path)
}

func (c *Cluster) controllerProps() string { return filepath.Join(c.dir, "controller.properties") }

func (c *Cluster) startZooKeeper(ctx context.Context, port int) error {
	path := filepath.Join(c.dir, "zookeeper.properties")
	props := map[string]string{
		"dataDir":                filepath.Join(c.dir, "zookeeper"),
		"clientPort":             strconv.Itoa(port),
		"clientPortAddress":      "127.0.0.1",
		"admin.enableServer":     "false",
		"maxClientCnxns":         "0",
		"tickTime":               "500",
		"4lw.commands.whitelist": "ruok",
	}
	if err := os.WriteFile(path, render(props, nil), 0o600); err != nil {
		return err
	}
	if err := c.runHead("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", path); err != nil {
		return err
	}
	return waitPort(ctx, c.headAt, c.head)
}

func (c *Cluster) runHead(name, class, path string) error {
	p, err := StartProcess(ProcessSpec{
		Name: c.opts.Name + "-" + name,
		Dir:  c.dir,
		Path: "java",
		Args: javaArgs(c.jars, append([]string{"-Xmx256m"}, quickJVM...), class, path),
	})
	c.head = p
	return err
}

// format writes the cluster id into a KRaft node's directory. Old releases need none.
func (c *Cluster) format(ctx context.Context, props string) error {
	if !c.release.kraft() {
		return nil
	}
	args := javaArgs(c.jars, append([]string{"-Xmx128m"}, quickJVM...), "kafka.tools.StorageTool", "format", "-t", c.id, "-c", props)
	for _, feature := range slices.Sorted(maps.Keys(c.opts.Features)) {
		args = append(args, "--feature", fmt.Sprintf("%s=%d", feature, c.opts.Features[feature]))
	}
	if out, err := exec.CommandContext(ctx, "java", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("format storage: %w: %s", err, lastLines(string(out), 10))
	}
	return nil
}

// waitPort returns once a process's address accepts connections.
func waitPort(ctx context.Context, addr string, p *Process) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if dialable(ctx, addr) {
			return nil
		}
		select {
		case <-p.Done():
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w", p.name, addr, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// render writes a properties file; the later map wins.
func render(props, over map[string]string) []byte {
	all := maps.Clone(props)
	maps.Copy(all, over)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s=%s\n", key, all[key])
	}
	return []byte(b.String())
}
