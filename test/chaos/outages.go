package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafkatest"
)

const (
	// flowUser is whom the flow logs in as where its login is taken away.
	flowUser, flowPassword = "mover", "mover-secret"
	mechanism              = "SCRAM-SHA-512"
	// diskSize is what each broker's data may take where a disk is filled.
	diskSize = 2 << 30
	// settling bounds the wait for brokers to do what was asked of them.
	settling = time.Minute
)

// diskFull leaves a broker no space until it ends itself, as Kafka does.
func (r *rig) diskFull(ctx context.Context, f Fault, b *kafkatest.Broker) error {
	if err := b.FillDisk(); err != nil {
		return err
	}
	heal := func() error { return errors.Join(b.FreeDisk(), b.Restart(ctx)) }
	ending, cancel := context.WithTimeoutCause(ctx, settling, errors.New("a broker without space goes on"))
	defer cancel()
	select {
	case <-b.Process().Done():
	case <-ending.Done():
		return errors.Join(context.Cause(ending), heal())
	}
	return errors.Join(r.lasting(ctx, f), heal())
}

// leaderless has the process die, and its heir find partitions of a copy without a leader: one
// broker alone holds them, and is down. The broker ends in order: Kafka 4 elects no replica whose
// broker was killed, if it is the only one, before a person allows an unclean election (KIP-966).
func (r *rig) leaderless(ctx context.Context, f Fault, b *kafkatest.Broker) error {
	spec := topics[f.Choice%len(topics)]
	topic := r.copyOf(spec)
	if err := r.current.Kill(); err != nil {
		return err
	}
	if err := r.replicas(ctx, topic, spec.partitions, b.ID()); err != nil {
		return err
	}
	if err := b.Stop(); err != nil {
		return err
	}
	heir, err := r.start(ctx)
	if err != nil {
		return err
	}
	r.current = heir
	if err := errors.Join(pause(ctx, f.Lasting), b.Restart(ctx)); err != nil {
		return err
	}
	all := []int32{b.ID()}
	for _, other := range r.target.Brokers() {
		if other != b {
			all = append(all, other.ID())
		}
	}
	return r.replicas(ctx, topic, spec.partitions, all...)
}

// replicas puts all partitions of a copy on brokers, and waits until these have them.
func (r *rig) replicas(ctx context.Context, topic string, partitions int32, brokers ...int32) error {
	var order kadm.AlterPartitionAssignmentsReq
	for p := range partitions {
		order.Assign(topic, p, brokers)
	}
	if _, err := r.onTarget.AlterPartitionAssignments(ctx, order); err != nil {
		return fmt.Errorf("move %s to brokers %v: %w", topic, brokers, err)
	}
	return r.inSync(ctx, len(brokers), topic)
}

// inSync waits until partitions have exactly so many replicas and all are in sync; of all topics
// where none is named.
func (r *rig) inSync(ctx context.Context, replicas int, names ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settling, errors.New("replicas do not get in sync"))
	defer cancel()
	for {
		details, err := r.onTarget.ListTopics(ctx, names...)
		if err == nil && synced(details, replicas) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func synced(details kadm.TopicDetails, replicas int) bool {
	for _, t := range details {
		for _, p := range t.Partitions {
			if t.Err != nil || len(p.Replicas) != replicas || len(p.ISR) != replicas {
				return false
			}
		}
	}
	return len(details) > 0
}

// readdressed moves the target's brokers, one by one, to addresses that no client
// has heard of, and gives the flow's file the new ones. The old ones are dead.
func (r *rig) readdressed(ctx context.Context, f Fault) error {
	for _, b := range r.target.Brokers() {
		if err := b.Readdress(ctx); err != nil {
			return err
		}
		if err := r.inSync(ctx, targetBrokers); err != nil {
			return err
		}
	}
	return errors.Join(r.writeFile(), r.lasting(ctx, f))
}

// upgraded takes the target to the next release, broker by broker, and then its features.
func (r *rig) upgraded(ctx context.Context, f Fault) error {
	if err := r.target.UpgradeController(ctx, kafkatest.ReleaseTarget); err != nil {
		return err
	}
	for _, b := range r.target.Brokers() {
		if err := b.Upgrade(ctx, kafkatest.ReleaseTarget); err != nil {
			return err
		}
		if err := r.inSync(ctx, targetBrokers); err != nil {
			return err
		}
	}
	if err := r.lasting(ctx, f); err != nil {
		return err
	}
	return r.target.UpgradeFeatures(ctx, kafkatest.ReleaseTarget)
}

// loginRevoked deletes the flow's user on the target, ends the sessions that would
// outlive it, and makes it again.
func (r *rig) loginRevoked(ctx context.Context, f Fault) error {
	gone := []kadm.DeleteSCRAM{{User: flowUser, Mechanism: kadm.ScramSha512}}
	back := []kadm.UpsertSCRAM{{User: flowUser, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: flowPassword}}
	if err := r.users(ctx, gone, nil); err != nil {
		return err
	}
	for _, b := range r.target.Brokers() {
		b.Proxy().Reset()
	}
	return errors.Join(r.lasting(ctx, f), r.users(ctx, nil, back))
}

func (r *rig) users(ctx context.Context, gone []kadm.DeleteSCRAM, back []kadm.UpsertSCRAM) error {
	altered, err := r.onTarget.AlterUserSCRAMs(ctx, gone, back)
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		return fmt.Errorf("alter user %s: %w", flowUser, err)
	}
	return nil
}

// targetOptions are the target's, with what the schedule's faults need of it.
func (r *rig) targetOptions() kafkatest.ClusterOptions {
	o := kafkatest.ClusterOptions{
		Name: "chaos-B", Version: kafkatest.ReleaseTarget, Brokers: targetBrokers, Proxied: true,
		Properties: map[string]string{
			"default.replication.factor": fmt.Sprint(targetBrokers), "min.insync.replicas": "2",
			"broker.session.timeout.ms": "6000",
		},
	}
	if r.plan.has(TargetUpgraded) {
		o.Version = kafkatest.ReleaseSource
	}
	if r.plan.has(LoginRevoked) {
		o.Listeners, o.Users = []kafkatest.Protocol{kafkatest.SASLPlaintext}, map[string]string{flowUser: flowPassword}
	}
	if r.plan.has(TargetDiskFull) {
		o.Disk = diskSize
	}
	return o
}

// launchTarget starts the target. Where this user may not mount file systems, no
// disk can be filled; the fault says so when its turn comes.
func (r *rig) launchTarget(ctx context.Context) (*kafkatest.Cluster, error) {
	o := r.targetOptions()
	c, err := r.launch(ctx, o)
	if errors.Is(err, kafkatest.ErrNoMount) {
		o.Disk = 0
		c, err = r.launch(ctx, o)
	}
	return c, err
}

// login are the lines by which the flow logs in at the target; none without a login.
func (r *rig) login() []string {
	if !r.plan.has(LoginRevoked) {
		return nil
	}
	var out []string
	for key, value := range r.target.ClientProperties(kafkatest.SASLPlaintext, mechanism, flowUser) {
		if !strings.HasPrefix(key, "bootstrap") {
			out = append(out, "B."+key+" = "+value)
		}
	}
	return out
}
