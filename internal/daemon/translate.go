package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// TranslateOptions say what is translated: one offset, or all that a group has
// committed.
type TranslateOptions struct {
	// Flow is the one flow to ask, "A->B"; empty means all that copy topics.
	Flow  string
	Group string // or, where it is empty,
	At    kafka.TopicPartition
	// Offset is in At, which is a partition of the source, or of the target if Reverse.
	Offset  int64
	Reverse bool
}

// Translated is the answer for one offset.
type Translated struct {
	Flow  string          `json:"flow"`
	Group string          `json:"group,omitempty"`
	From  TranslatedPlace `json:"from"`
	To    TranslatedPlace `json:"to"` // without an offset where the quality is unknown
	// Quality is exact, next, before or unknown.
	Quality string `json:"quality"`
	By      string `json:"by,omitempty"` // what answered
	Reason  string `json:"reason"`
}

// TranslatedPlace is an offset on one of the two clusters.
type TranslatedPlace struct {
	Cluster   mirror.ClusterAlias `json:"cluster"`
	Topic     string              `json:"topic,omitempty"`
	Partition int32               `json:"partition"`
	Offset    *int64              `json:"offset,omitempty"`
}

// Known reports whether there is an offset.
func (t Translated) Known() bool { return t.To.Offset != nil }

// qualityName is the quality in the words of a report.
func qualityName(q offsets.Quality) string {
	if q == offsets.TooOld {
		q = offsets.Unknown
	}
	return q.String()
}

// Translate answers from what is written down on the clusters; nothing that runs
// is asked. A flow's source is needed only for its groups, and for offset syncs
// that lie there. The error says why there is no answer at all.
func Translate(ctx context.Context, dep *config.Deployment, o TranslateOptions, log *slog.Logger) ([]Translated, error) {
	flows, err := copying(dep, o.Flow)
	if err != nil {
		return nil, err
	}
	var all []Translated
	for _, f := range flows {
		some, err := translateFlow(ctx, f, o, log)
		if err != nil {
			return all, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		all = append(all, some...)
	}
	// With several flows, those that have nothing to do with the topic do not matter.
	if slices.ContainsFunc(all, Translated.Known) {
		all = slices.DeleteFunc(all, func(t Translated) bool { return o.Group == "" && !t.Known() })
	}
	return all, nil
}

func translateFlow(ctx context.Context, f *config.Flow, o TranslateOptions, log *slog.Logger) ([]Translated, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sides, err := askingBoth(f, log)
	if err != nil {
		return nil, err
	}
	defer sides.close()
	topics, err := sides.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	t := translation{f: f, reverse: o.Reverse, books: books(f, sides.target, topics, log)}
	places := []kafka.GroupOffset{{TopicPartition: o.At, Offset: o.Offset}}
	if o.Group != "" {
		if places, err = t.committed(ctx, sides, o.Group); err != nil {
			return nil, err
		}
	}
	pairs, err := t.pairs(ctx, places)
	if err != nil {
		return nil, err
	}
	beyond(pairs, topics)
	var sources []kafka.TopicPartition
	for _, p := range pairs {
		if p.why == "" {
			sources = append(sources, p.source)
		}
	}
	if o.Group != "" && len(sources) > 0 { // what else a group reads is not this flow's
		pairs = slices.DeleteFunc(pairs, func(p sourceAndCopy) bool { return p.why != "" })
	}
	if t.from.maps, err = t.books.Maps(ctx, sources); err != nil {
		return nil, err
	}
	noSyncs := ""
	if len(sources) > 0 {
		t.from.syncs, noSyncs = readSyncs(ctx, f, sides)
	}
	t.from = t.from.readingLogs(ctx, newExactly(f, sides))
	answers := make([]Translated, len(pairs))
	for i, p := range pairs {
		answers[i] = t.answer(p)
		answers[i].Group = o.Group
		if noSyncs != "" && p.why == "" && answers[i].By == "" {
			answers[i].Reason += "; " + noSyncs
		}
	}
	return answers, nil
}

// translation is the work for one flow.
type translation struct {
	f       *config.Flow
	reverse bool
	books   coord.Books
	from    storedTranslator
}

// committed are the places of a group on the side that is translated from.
func (t *translation) committed(ctx context.Context, sides pair, group string) ([]kafka.GroupOffset, error) {
	on, alias := sides.source, t.f.ID.Source
	if t.reverse {
		on, alias = sides.target, t.f.ID.Target
	}
	got, err := groupOffsets(ctx, on, group)
	if err != nil {
		return nil, err
	}
	places := slices.DeleteFunc(got, func(o kafka.GroupOffset) bool {
		return o.Err != nil || o.Offset < 0 || t.f.Policy.IsInternalTopic(o.Topic)
	})
	if len(places) == 0 {
		return nil, fmt.Errorf("group %s has committed nothing on cluster %s", group, alias)
	}
	slices.SortFunc(places, func(a, b kafka.GroupOffset) int { return a.Compare(b.TopicPartition) })
	return places, nil
}

func groupOffsets(ctx context.Context, c *cluster.Client, group string) ([]kafka.GroupOffset, error) {
	got := c.FetchGroupOffsets(ctx, group)[group]
	return got.Offsets, got.Err
}

// sourceAndCopy is a place with the name of its partition on the source.
type sourceAndCopy struct {
	kafka.GroupOffset                      // as it was given
	source            kafka.TopicPartition // of the same partition
	copied            kafka.TopicPartition
	why               string // it is not copied
}

// pairs finds the other name of each place's partition.
func (t *translation) pairs(ctx context.Context, places []kafka.GroupOffset) ([]sourceAndCopy, error) {
	var sources map[string]string // by the name of the copy
	if t.reverse {
		stored, err := t.books.Positions(ctx)
		if err != nil {
			return nil, err
		}
		sources = map[string]string{}
		for tp := range stored {
			sources[t.f.Policy.RemoteTopic(t.f.ID.Source, tp.Topic)] = tp.Topic
		}
	}
	pairs := make([]sourceAndCopy, len(places))
	for i, place := range places {
		p := sourceAndCopy{GroupOffset: place, source: place.TopicPartition, copied: place.TopicPartition}
		if t.reverse {
			var ok bool
			if p.source.Topic, ok = sources[place.Topic]; !ok {
				p.why = "the flow has stored no position of a topic that is called so on the target"
			}
		} else {
			p.copied.Topic = t.f.Policy.RemoteTopic(t.f.ID.Source, place.Topic)
			if ok, why := t.f.Selection.Replicates(place.Topic); !ok {
				p.why = "not copied: " + why
			}
		}
		pairs[i] = p
	}
	return pairs, nil
}

// beyond names the places in partitions that the copy does not have.
func beyond(pairs []sourceAndCopy, copies []kafka.TopicDetail) {
	counts := make(map[string]int, len(copies))
	for _, t := range copies {
		counts[t.Name] = len(t.Partitions)
	}
	for i := range pairs {
		p := &pairs[i]
		if n := counts[p.copied.Topic]; p.why == "" && n > 0 && int(p.Partition) >= n {
			p.why = fmt.Sprintf("%s has no partition %d on the target: it has %s", p.copied.Topic, p.Partition, countNoun(n, "partition"))
		}
	}
}

// answer translates one place.
func (t *translation) answer(p sourceAndCopy) Translated {
	given := p.Offset
	a := Translated{
		Flow:    t.f.ID.String(),
		From:    TranslatedPlace{Cluster: t.f.ID.Source, Topic: p.source.Topic, Partition: p.Partition, Offset: &given},
		To:      TranslatedPlace{Cluster: t.f.ID.Target, Topic: p.copied.Topic, Partition: p.Partition},
		Quality: offsets.Unknown.String(), Reason: p.why,
	}
	if t.reverse {
		a.From.Cluster, a.From.Topic, a.To.Cluster, a.To.Topic = a.To.Cluster, a.To.Topic, a.From.Cluster, a.From.Topic
	}
	if p.why != "" {
		return a
	}
	var known bool
	var offset int64
	var quality offsets.Quality
	var b basis
	if t.reverse {
		var got offsets.Origin
		got, b = t.from.origin(p.source, mirror.DownstreamOffset(given))
		known, offset, quality = got.Known(), int64(got.Offset), got.Quality
	} else {
		var got offsets.Translation
		got, b = t.from.answer(p.source, mirror.UpstreamOffset(given))
		known, offset, quality = got.Known(), int64(got.Offset), got.Quality
	}
	a.Quality, a.By, a.Reason = qualityName(quality), b.by, b.reason
	if known {
		a.To.Offset = &offset
	}
	return a
}
