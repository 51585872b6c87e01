package cluster

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"heliograph/internal/kafka"
)

const featureTransactions = "transaction.version"

// Features asks every broker what it speaks. A broker that is down does not
// count; the answer holds for those that are up.
func (c *Client) Features(ctx context.Context) (kafka.Features, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	meta, err := c.askMetadata(ctx, req)
	if err != nil {
		return kafka.Features{}, c.fail("learn features", "", err)
	}
	answers, err := c.apiVersions(ctx, meta)
	if err != nil {
		return kafka.Features{}, c.fail("learn features", "", err)
	}
	f := kafka.Features{Brokers: len(meta.Brokers)}
	if meta.ClusterID != nil {
		f.ClusterID = *meta.ClusterID
	}
	all := make(speaks)
	for _, a := range answers {
		all.narrow(a)
	}
	f.TransactionVersion = transactionVersion(answers)
	f.Version = oldestRelease(answers)
	f.TopicIDs = all.version(kmsg.Metadata) >= 10
	f.IncrementalAlterConfigs = all.version(kmsg.IncrementalAlterConfigs) >= 0
	f.Transactions = all.version(kmsg.InitProducerID) >= 0 &&
		all.version(kmsg.AddPartitionsToTxn) >= 0 && all.version(kmsg.EndTxn) >= 0
	return f, nil
}

// transactionVersion is the level of transaction.version that the broker with the
// newest view of the finalized features tells; 0 where none does.
func transactionVersion(answers []*kmsg.ApiVersionsResponse) (level int16) {
	newest := int64(-1)
	for _, a := range answers {
		if a.FinalizedFeaturesEpoch < newest {
			continue
		}
		newest, level = a.FinalizedFeaturesEpoch, 0
		for _, feature := range a.FinalizedFeatures {
			if feature.Name == featureTransactions {
				level = feature.MaxVersionLevel
			}
		}
	}
	return level
}

func (c *Client) apiVersions(ctx context.Context, meta *kmsg.MetadataResponse) ([]*kmsg.ApiVersionsResponse, error) {
	answers := make([]*kmsg.ApiVersionsResponse, len(meta.Brokers))
	errs := make([]error, len(meta.Brokers))
	var wg sync.WaitGroup
	for i := range meta.Brokers {
		wg.Go(func() {
			req := kmsg.NewPtrApiVersionsRequest()
			req.ClientSoftwareName, req.ClientSoftwareVersion = softwareName, softwareVersion
			node := meta.Brokers[i].NodeID
			answers[i], errs[i] = req.RequestWith(ctx, c.kgo.Broker(int(node)))
			if errs[i] == nil && answers[i].ErrorCode != 0 {
				errs[i] = kafka.Code(answers[i].ErrorCode)
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("node %d: %w", node, errs[i])
			}
		})
	}
	wg.Wait()
	var good []*kmsg.ApiVersionsResponse
	var failed error
	for i, err := range errs {
		if err == nil {
			good = append(good, answers[i])
		} else if failed == nil {
			failed = err
		}
	}
	if len(good) == 0 {
		return nil, failed
	}
	return good, nil
}

// speaks holds, per request key, the newest version that every broker takes; -1 for none.
type speaks map[int16]int16

func (s speaks) narrow(a *kmsg.ApiVersionsResponse) {
	here := make(map[int16]int16, len(a.ApiKeys))
	for _, k := range a.ApiKeys {
		here[k.ApiKey] = k.MaxVersion
	}
	if len(s) == 0 {
		maps.Copy(s, here)
		return
	}
	for key, version := range s {
		if v, ok := here[key]; ok {
			s[key] = min(version, v)
		} else {
			s[key] = -1
		}
	}
}

func (s speaks) version(key kmsg.Key) int16 {
	if v, ok := s[key.Int16()]; ok {
		return v
	}
	return -1
}

var release = regexp.MustCompile(`(\d+)\.(\d+)`)

// oldestRelease guesses each broker's release from the versions it speaks.
func oldestRelease(answers []*kmsg.ApiVersionsResponse) string {
	oldest, low := "", -1
	for _, a := range answers {
		m := release.FindStringSubmatch(kversion.FromApiVersionsResponse(a).VersionGuess())
		if m == nil {
			continue
		}
		major, errMajor := strconv.Atoi(m[1])
		minor, errMinor := strconv.Atoi(m[2])
		if errMajor != nil || errMinor != nil {
			continue
		}
		if rank := major*1000 + minor; low < 0 || rank < low {
			oldest, low = m[0], rank
		}
	}
	return oldest
}
