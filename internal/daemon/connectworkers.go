package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// connectProtocol is the protocol type of Connect's worker groups, dedicated
// MirrorMaker's among them.
const connectProtocol = "connect"

// connectors are the workers of Connect clusters on one side of a flow, if one of
// these clusters has a MirrorSourceConnector that copies the flow. Which group
// belongs to which settings topic is told nowhere, so that every group with
// members is named. Dedicated MirrorMaker's topic is passed over: its group is
// known by name.
func connectors(ctx context.Context, f *config.Flow, on mirror.ClusterAlias, c *cluster.Client) ([]Worker, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	groups, err := connectGroups(ctx, f, c)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	topics, err := c.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var alive []Worker
	for _, t := range topics {
		if !mayHoldConnectors(t) {
			continue
		}
		found := connectSettings{}
		if err := readLog(ctx, c, kafka.TopicPartition{Topic: t.Name}, found.apply); err != nil {
			return nil, fmt.Errorf("connector settings in %s: %w", t.Name, err)
		}
		for _, name := range found.copying(f) {
			for _, group := range groups {
				alive = append(alive, Worker{
					Flow: f.ID, Group: group.Group, On: on,
					Program: fmt.Sprintf("Java MirrorMaker's connector %s of a Connect cluster (settings in %s)", name, t.Name),
					Client:  strings.Join(group.Clients, ", "),
				})
			}
		}
	}
	return alive, nil
}

// connectGroups are the worker groups of Connect that have members.
func connectGroups(ctx context.Context, f *config.Flow, c *cluster.Client) ([]kafka.GroupDescription, error) {
	listed, err := c.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range listed {
		if l.ProtocolType == connectProtocol && l.Group != f.Positions.GroupID {
			names = append(names, l.Group)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	described := c.DescribeGroups(ctx, names...)
	var alive []kafka.GroupDescription
	for _, name := range names {
		if d := described[name]; d.Err == nil && d.Members > 0 {
			alive = append(alive, d)
		}
	}
	return alive, nil
}

// mayHoldConnectors reports whether a topic may be a Connect cluster's
// config.storage.topic, which has one partition and by every guide a telling name.
func mayHoldConnectors(t kafka.TopicDetail) bool {
	name := strings.ToLower(t.Name)
	return !t.Internal && len(t.Partitions) == 1 && (strings.Contains(name, "config") || strings.Contains(name, "connect")) &&
		!strings.HasPrefix(name, "mm2-configs.")
}

// connectSettings are the connectors of a settings topic by name.
type connectSettings map[string]*connectorSettings

type connectorSettings struct {
	Properties map[string]string
	State      string
}

// apply reads one record. What is not a connector's is passed over.
func (s connectSettings) apply(r kafka.Record) error {
	of := func(name string) *connectorSettings {
		if s[name] == nil {
			s[name] = &connectorSettings{}
		}
		return s[name]
	}
	if name, ok := strings.CutPrefix(string(r.Key), "connector-"); ok {
		var v struct {
			Properties map[string]string `json:"properties"`
		}
		_ = json.Unmarshal(r.Value, &v) // a tombstone, or not Connect's: no properties
		of(name).Properties = v.Properties
	} else if name, ok := strings.CutPrefix(string(r.Key), "target-state-"); ok {
		var v struct {
			State string `json:"state"`
		}
		_ = json.Unmarshal(r.Value, &v)
		of(name).State = v.State
	}
	return nil
}

// copying are the connectors that copy the flow, and are neither paused nor stopped.
func (s connectSettings) copying(f *config.Flow) []string {
	var names []string
	for name, c := range s {
		target := c.Properties["target.cluster.alias"]
		if strings.HasSuffix(c.Properties["connector.class"], "MirrorSourceConnector") &&
			c.Properties["source.cluster.alias"] == string(f.ID.Source) && (target == "" || target == string(f.ID.Target)) &&
			(c.State == "" || c.State == "STARTED") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
