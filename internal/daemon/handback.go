package daemon

import (
	"context"
	"log/slog"

	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
	"heliograph/internal/telemetry"
)

// HandedBack is what Handback wrote down of one flow.
type HandedBack struct {
	Flow string `json:"flow"`
	// Partitions is how many have exact positions now.
	Partitions int          `json:"partitions"`
	Unsettled  []NotSettled `json:"unsettled"`
	Error      string       `json:"error,omitempty"` // why the flow was not handed back
}

// NotSettled is a partition whose place only a person can tell. Its old position
// is left as it is.
type NotSettled struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Reason    string `json:"reason"`
}

// Handback makes the positions of the flows exact and readable for Java
// MirrorMaker, as a clean stop does, without copying anything. Nobody else may
// run the flows: see [Workers].
func Handback(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, host string, log *slog.Logger) []HandedBack {
	var all []HandedBack
	for _, f := range dep.Targeting(targets...) {
		if !f.Enabled {
			continue
		}
		h := HandedBack{Flow: f.ID.String(), Unsettled: []NotSettled{}}
		settled, err := settle(ctx, dep, &f, host, log)
		if err != nil {
			h.Error = err.Error()
		}
		h.Partitions = len(settled.Partitions)
		for _, p := range settled.Unsettled {
			h.Unsettled = append(h.Unsettled, NotSettled{p.Source.Topic, p.Source.Partition, p.Reason})
		}
		all = append(all, h)
	}
	return all
}

func settle(ctx context.Context, dep *config.Deployment, f *config.Flow, host string, log *slog.Logger) (flow.Settled, error) {
	log = log.With(telemetry.KeyFlow, f.ID.String())
	budget := replicate.NewBudget(dep.Process.MemoryBytes)
	from, to := Sides(f)
	sides, err := openPair(f.ID, from, to, budget, log)
	if err != nil {
		return flow.Settled{}, err
	}
	defer sides.close()
	deps := flow.Deps{Source: sides.source, Target: sides.target, Budget: budget, Log: log, Host: host}
	return flow.New(specOf(f), deps).Settle(ctx)
}
