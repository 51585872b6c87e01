package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SetFeature raises or lowers a finalized feature of the running cluster.
func (c *Cluster) SetFeature(ctx context.Context, feature string, level int16) error {
	const up, down = 1, 2
	cl, err := c.Open()
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, kind := range []int8{up, down} {
		req := kmsg.NewPtrUpdateFeaturesRequest()
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType = feature, level, kind
		req.FeatureUpdates = append(req.FeatureUpdates, u)
		var resp *kmsg.UpdateFeaturesResponse
		if resp, err = req.RequestWith(ctx, cl); err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			for _, r := range resp.Results {
				err = errors.Join(err, kerr.ErrorForCode(r.ErrorCode))
			}
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("set feature %s of cluster %s to %d: %w", feature, c.opts.Name, level, err)
}

// Upgrade restarts the broker with the jars of another release, on the same data.
func (b *Broker) Upgrade(ctx context.Context, version string) error {
	r, err := parseRelease(version)
	if err != nil {
		return err
	}
	jars, err := Jars(ctx, version)
	if err != nil {
		return err
	}
	if err := b.Stop(); err != nil {
		return err
	}
	b.release, b.jars = r, jars
	return b.Restart(ctx)
}

// UpgradeController restarts the controller beside the brokers with the jars of
// another release.
func (c *Cluster) UpgradeController(ctx context.Context, version string) error {
	jars, err := Jars(ctx, version)
	if err != nil {
		return err
	}
	if c.head == nil || !c.release.kraft() {
		return errors.New("the cluster has no controller beside its brokers")
	}
	if err := c.head.Stop(); err != nil {
		return err
	}
	c.jars = jars
	if err := c.runHead("controller", "kafka.Kafka", c.controllerProps()); err != nil {
		return err
	}
	return waitPort(ctx, c.headAt, c.head)
}

// UpgradeFeatures takes the cluster's features to a release that all its brokers run.
func (c *Cluster) UpgradeFeatures(ctx context.Context, version string) error {
	release := strings.Join(strings.Split(version, ".")[:2], ".")
	out, err := Tool(ctx, version, "FeatureCommand", "--bootstrap-server", c.Internal()[0], "upgrade", "--release-version", release)
	if err != nil {
		return fmt.Errorf("upgrade the features of cluster %s: %s: %w", c.opts.Name, strings.TrimSpace(out), err)
	}
	return nil
}

// Readdress restarts the broker behind another address, which it advertises from
// then on. The old one is dead.
func (b *Broker) Readdress(ctx context.Context) error {
	old := b.proxy
	if old == nil {
		return errors.New("the broker has no proxy, and so no address to give up")
	}
	if err := b.Stop(); err != nil {
		return err
	}
	proxy, err := NewProxy(ctx, b.Listening())
	if err != nil {
		return err
	}
	b.proxy = proxy
	if err := os.WriteFile(b.propsPath, b.properties(), 0o600); err != nil {
		return err
	}
	if err := old.Close(); err != nil {
		return fmt.Errorf("give up the address of broker %d: %w", b.id, err)
	}
	return b.Restart(ctx)
}
