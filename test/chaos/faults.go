package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"heliograph/internal/kafkatest"
)

// inject makes a fault, lets it last and heals it. Its return is the fault's end.
func (r *rig) inject(ctx context.Context, f Fault) error {
	source, target := r.source.Brokers(), r.target.Brokers()
	struck := target
	if f.Kind.atSource() {
		struck = source
	}
	broker := struck[f.Broker-1]
	switch f.Kind {
	case ProcessKilled:
		return r.killed(ctx, f)
	case ProcessKilledSoon:
		return r.killedSoon(ctx, f)
	case Zombie:
		return r.zombie(ctx, f)
	case SecondProcess:
		return r.second(ctx, f)
	case TargetKilled, SourceKilled:
		return r.downFor(ctx, f, broker)
	case TargetRestarted, SourceRestarted:
		if err := r.lasting(ctx, f); err != nil {
			return err
		}
		return broker.Restart(ctx)
	case TargetPaused, SourcePaused:
		if err := broker.Pause(); err != nil {
			return err
		}
		return errors.Join(r.lasting(ctx, f), broker.Resume())
	case TargetCut, SourceCut:
		return r.proxied(ctx, f, struck, (*kafkatest.Proxy).Cut)
	case TargetHalfOpen, SourceHalfOpen:
		return r.proxied(ctx, f, struck, (*kafkatest.Proxy).Silence)
	case TargetDelayed:
		delay := time.Duration(1+f.Choice) * 150 * time.Millisecond
		return r.proxied(ctx, f, struck, func(p *kafkatest.Proxy) { p.Delay(delay) })
	case TargetReset, SourceReset:
		return r.resets(ctx, f, struck)
	case LeadersMoved:
		return r.leadersMoved(ctx, f)
	case CoordinatorKilled:
		return r.coordinatorKilled(ctx, f)
	case InternalDeleted:
		if f.Choice%2 == 0 {
			return errors.Join(deleted(ctx, r.onSource, "mm2-offset-syncs.B.internal"), r.lasting(ctx, f))
		}
		return errors.Join(deleted(ctx, r.onTarget, alias+".checkpoints.internal"), r.lasting(ctx, f))
	case PositionsDeleted:
		if err := deleted(ctx, r.onTarget, positionsTopic); err != nil {
			return err
		}
		if err := r.lasting(ctx, f); err != nil {
			return err
		}
		return r.replace(ctx)
	case TargetDiskFull:
		return r.diskFull(ctx, f, broker)
	case TargetLeaderless:
		return r.leaderless(ctx, f, broker)
	case TargetReaddressed:
		return r.readdressed(ctx, f)
	case TargetUpgraded:
		return r.upgraded(ctx, f)
	case LoginRevoked:
		return r.loginRevoked(ctx, f)
	default:
		return fmt.Errorf("no such fault: %s", f.Kind)
	}
}

// lasting lets a fault last; where the schedule says so, the process dies in the middle.
func (r *rig) lasting(ctx context.Context, f Fault) error {
	if !f.Killed {
		return pause(ctx, f.Lasting)
	}
	if err := pause(ctx, f.Lasting/2); err != nil {
		return err
	}
	if err := r.replace(ctx); err != nil {
		return err
	}
	return pause(ctx, f.Lasting/2)
}

func (r *rig) killed(ctx context.Context, f Fault) error {
	if err := r.current.Kill(); err != nil {
		return err
	}
	if err := pause(ctx, f.Lasting); err != nil {
		return err
	}
	p, err := r.start(ctx)
	if err == nil {
		r.current = p
	}
	return err
}

// killedSoon kills several processes in a row, each before it is quite up.
func (r *rig) killedSoon(ctx context.Context, f Fault) error {
	for range 2 + f.Choice {
		if err := r.replace(ctx); err != nil {
			return err
		}
		if err := pause(ctx, f.Lasting); err != nil {
			return err
		}
	}
	return r.replace(ctx)
}

// zombie freezes the owner until another process has taken all lanes over, and
// wakes it up again. In half of the cases the heir comes only afterwards.
func (r *rig) zombie(ctx context.Context, f Fault) error {
	old := r.current
	if f.Choice%2 == 0 {
		if err := old.Pause(); err != nil {
			return err
		}
	}
	heir, err := r.start(ctx)
	if err != nil {
		return err
	}
	if f.Choice%2 == 1 {
		if err := heir.awaitOwned(ctx, 1); err != nil {
			return err
		}
		if err := old.Pause(); err != nil {
			return err
		}
	}
	if err := heir.awaitOwned(ctx, lanes); err != nil {
		return errors.Join(err, old.Resume())
	}
	if err := pause(ctx, f.Lasting); err != nil {
		return err
	}
	if err := old.Resume(); err != nil {
		return err
	}
	if err := pause(ctx, f.Lasting); err != nil {
		return err
	}
	r.current = heir
	return r.retire(old, f)
}

// second starts another process of the same flow and ends one of the two.
func (r *rig) second(ctx context.Context, f Fault) error {
	other, err := r.start(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, f.Lasting); err != nil {
		return err
	}
	old := r.current
	r.current = other
	if f.Choice >= 2 {
		r.current, old = old, other
	}
	return r.retire(old, f)
}

// retire ends a process that is no longer needed, in order or not.
func (r *rig) retire(p *process, f Fault) error {
	if f.Choice%2 == 0 {
		return p.Kill()
	}
	return p.Stop()
}

func (r *rig) downFor(ctx context.Context, f Fault, b *kafkatest.Broker) error {
	if err := b.Kill(); err != nil {
		return err
	}
	return errors.Join(r.lasting(ctx, f), b.Restart(ctx))
}

// proxied makes the proxies of one broker or of all misbehave.
func (r *rig) proxied(ctx context.Context, f Fault, brokers []*kafkatest.Broker, wrong func(*kafkatest.Proxy)) error {
	if f.Choice%2 == 0 {
		brokers = brokers[f.Broker-1 : f.Broker]
	}
	for _, b := range brokers {
		wrong(b.Proxy())
	}
	err := r.lasting(ctx, f)
	for _, b := range brokers {
		b.Proxy().Heal()
	}
	return err
}

// resets breaks all connections again and again.
func (r *rig) resets(ctx context.Context, f Fault, brokers []*kafkatest.Broker) error {
	for end := time.Now().Add(f.Lasting); time.Now().Before(end); {
		for _, b := range brokers {
			b.Proxy().Reset()
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// leadersMoved makes another replica of every copy the preferred leader, and elects it.
func (r *rig) leadersMoved(ctx context.Context, f Fault) error {
	details, err := r.onTarget.ListTopics(ctx)
	if err != nil {
		return err
	}
	var order kadm.AlterPartitionAssignmentsReq
	var set kadm.TopicsSet
	for _, t := range details {
		for _, p := range t.Partitions {
			if len(p.Replicas) < 2 {
				continue
			}
			by := 1 + f.Choice%(len(p.Replicas)-1)
			order.Assign(t.Topic, p.Partition, append(append([]int32{}, p.Replicas[by:]...), p.Replicas[:by]...))
			set.Add(t.Topic, p.Partition)
		}
	}
	if _, err := r.onTarget.AlterPartitionAssignments(ctx, order); err != nil {
		return fmt.Errorf("reorder replicas: %w", err)
	}
	if _, err := r.onTarget.ElectLeaders(ctx, kadm.ElectPreferredReplica, set); err != nil {
		return fmt.Errorf("elect leaders: %w", err)
	}
	return r.lasting(ctx, f)
}

func (r *rig) coordinatorKilled(ctx context.Context, f Fault) error {
	var found kadm.FindCoordinatorResponses
	if f.Choice%2 == 0 {
		found = r.onTarget.FindGroupCoordinators(ctx, groupID)
	} else {
		found = r.onTarget.FindTxnCoordinators(ctx, fmt.Sprintf("%s-MirrorSourceConnector-%d", groupID, f.Choice))
	}
	for _, c := range found {
		if c.Err != nil {
			return fmt.Errorf("find the coordinator of %s: %w", c.Name, c.Err)
		}
		return r.downFor(ctx, f, r.target.Broker(c.NodeID))
	}
	return errors.New("no coordinator was named")
}

func deleted(ctx context.Context, adm *kadm.Client, topic string) error {
	answer, err := adm.DeleteTopic(ctx, topic)
	if err == nil {
		err = answer.Err
	}
	// The process may not have made it again since the last time.
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("delete %s: %w", topic, err)
	}
	return nil
}

// heal ends everything that may still be wrong, whatever happened before.
func (r *rig) heal(ctx context.Context) error {
	var errs []error
	for _, c := range []*kafkatest.Cluster{r.source, r.target} {
		for _, b := range c.Brokers() {
			b.Proxy().Heal()
			errs = append(errs, b.Resume())
			if !b.Process().Running() {
				errs = append(errs, b.Restart(ctx))
			}
		}
	}
	errs = append(errs, r.current.Resume())
	if !r.current.Running() {
		// A process that ends by itself is a finding of its own; the run goes on to its verdict.
		errs = append(errs, fmt.Errorf("process %d has ended by itself:\n%s", r.current.n, r.current.Tail(20)))
		p, err := r.start(ctx)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		r.current = p
	}
	return errors.Join(errs...)
}
