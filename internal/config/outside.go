package config

import (
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// Outside is something beyond the configuration that a deployment makes its
// process use: a file, an address where tokens are made, the process's own identity.
type Outside struct {
	Kind  OutsideKind
	Value string // the path, or the address; empty for an identity
	Key   string // of the client setting that asks for it, without prefixes
	Alias mirror.ClusterAlias
}

// OutsideKind is what kind of thing it is.
type OutsideKind uint8

// The kinds.
const (
	OutsideFile OutsideKind = iota + 1
	OutsideTokens
	OutsideIdentity // the credentials of the process's environment
)

// Outside lists what the connections of a deployment reach for, without repeats. What config
// providers read is not among it: a caller decides that with its [Source].
func (d *Deployment) Outside() []Outside {
	var all []Outside
	add := func(o Outside) {
		if o.Value != "" || o.Kind == OutsideIdentity {
			if !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	for _, alias := range d.Aliases {
		d.Clusters[alias].outside(alias, add)
	}
	for i := range d.Flows {
		f, c := &d.Flows[i], &d.Flows[i].Clients
		for _, client := range []*Client{&c.SourceConsumer, &c.SourceAdmin, &c.SourceProducer} {
			client.outside(f.ID.Source, add)
		}
		for _, client := range []*Client{&c.TargetConsumer, &c.TargetAdmin, &c.TargetProducer, &c.RecordProducer, &c.Worker} {
			client.outside(f.ID.Target, add)
		}
	}
	return all
}

func (c Connection) outside(alias mirror.ClusterAlias, add func(Outside)) {
	if c.TLS != nil {
		add(Outside{OutsideFile, c.TLS.Truststore.Location, "ssl.truststore.location", alias})
		add(Outside{OutsideFile, c.TLS.Keystore.Location, "ssl.keystore.location", alias})
	}
	if c.SASL == nil {
		return
	}
	switch login := c.SASL.Credential.(type) {
	case OAuth:
		add(Outside{OutsideTokens, login.TokenEndpoint, "sasl.oauthbearer.token.endpoint.url", alias})
		add(Outside{OutsideFile, login.TokenFile, "sasl.oauthbearer.token.endpoint.url", alias})
		add(Outside{OutsideFile, login.TLS["ssl.truststore.location"], "sasl.jaas.config", alias})
		add(Outside{OutsideFile, login.TLS["ssl.keystore.location"], "sasl.jaas.config", alias})
	case Kerberos:
		add(Outside{OutsideFile, login.Keytab, "sasl.jaas.config", alias})
	case MSKIAM:
		add(Outside{OutsideIdentity, "", "sasl.jaas.config", alias})
	}
}

// IsConnectionSetting says whether a key, whatever its prefixes, tells where a cluster is or
// who to be there.
func IsConnectionSetting(key string) bool {
	for name := range connectionNames {
		if key == name || strings.HasSuffix(key, "."+name) {
			return true
		}
	}
	return false
}

// Shown is a setting's value for people: hidden if the key, whatever its prefixes, holds a secret.
func Shown(key, text string) string {
	v := value{Raw: text, Text: text}
	return v.shown((*catalogue)(nil).secret(key))
}
