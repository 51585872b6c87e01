package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Worker is a process that is alive in the worker group of a flow.
type Worker struct {
	Flow    mirror.FlowID       `json:"flow"`
	Group   string              `json:"group"`
	On      mirror.ClusterAlias `json:"cluster"` // where the group lies
	Program string              `json:"program"`
	Client  string              `json:"client"` // client id and host
}

// String is one line for people.
func (w Worker) String() string {
	return fmt.Sprintf("flow %s: %s is alive in group %s on cluster %s: %s", w.Flow, w.Program, w.Group, w.On, w.Client)
}

const (
	programMirrorMaker = "Java MirrorMaker"
	programHeliograph  = "heliograph"
	workersLook        = time.Second
)

// Workers lists who runs the flows of a file now: the members of their worker
// groups, Java MirrorMaker's and heliograph's own, and Connect clusters on either
// side that have a connector for a flow. After a kill a member is
// listed until its session ends, so that it is waited for up to the given time.
func Workers(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, wait time.Duration, log *slog.Logger) ([]Worker, error) {
	var alive []Worker
	deadline := time.Now().Add(wait)
	for _, f := range dep.Targeting(targets...) {
		if !f.Enabled {
			continue
		}
		some, err := workersOf(ctx, &f, deadline, log)
		if err != nil {
			return nil, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		alive = append(alive, some...)
	}
	return alive, nil
}

func workersOf(ctx context.Context, f *config.Flow, deadline time.Time, log *slog.Logger) ([]Worker, error) {
	sides, err := askingBoth(f, log)
	if err != nil {
		return nil, err
	}
	defer sides.close()
	for {
		alive, err := workersNow(ctx, f, sides, log)
		if err != nil && !kafka.Heals(err) || err == nil && len(alive) == 0 || time.Now().After(deadline) {
			return alive, err
		}
		select {
		case <-ctx.Done():
			return alive, context.Cause(ctx)
		case <-time.After(workersLook):
		}
	}
}

// workersNow are the flow's workers at this moment.
func workersNow(ctx context.Context, f *config.Flow, sides pair, log *slog.Logger) ([]Worker, error) {
	alive, err := members(ctx, f, sides.target)
	if err != nil {
		return alive, err
	}
	for on, c := range map[mirror.ClusterAlias]*cluster.Client{f.ID.Target: sides.target, f.ID.Source: sides.source} {
		some, err := connectors(ctx, f, on, c)
		if err != nil {
			// A takeover must be possible while the source is away, and without a right
			// that nothing else needs.
			log.Warn("whether a Connect cluster runs MirrorMaker for this flow is not known", "flow", f.ID.String(), "cluster", string(on), "err", err)
		}
		alive = append(alive, some...)
	}
	return alive, nil
}

func members(ctx context.Context, f *config.Flow, target *cluster.Client) ([]Worker, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	group := f.Positions.GroupID
	d := target.DescribeGroups(ctx, group)[group]
	if d.Err != nil {
		return nil, d.Err
	}
	program := programMirrorMaker
	if strings.EqualFold(d.ProtocolType, "consumer") {
		program = programHeliograph
	}
	alive := make([]Worker, 0, d.Members)
	for _, c := range d.Clients {
		alive = append(alive, Worker{Flow: f.ID, Group: group, On: f.ID.Target, Program: program, Client: c})
	}
	return alive, nil
}
