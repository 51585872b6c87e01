package config

import (
	"slices"
	"strings"
	"sync"
)

// Type is how the value of a key is read.
type Type string

// The types of values.
const (
	TypeBool     Type = "boolean"
	TypeInt      Type = "int"
	TypeLong     Type = "long"
	TypeFactor   Type = "replication factor" // -1 or positive
	TypeSeconds  Type = "seconds"
	TypeMillis   Type = "milliseconds"
	TypeSize     Type = "size" // bytes, or with a unit: 64MiB
	TypeString   Type = "string"
	TypeSecret   Type = "secret"
	TypeList     Type = "list"
	TypePatterns Type = "list of patterns" // Java regular expressions, matched against the whole name
	TypeClass    Type = "class"
)

// Scope is where a key may stand; scopes are combined.
type Scope uint8

// The places of keys.
const (
	ScopeTop     Scope = 1 << iota // key
	ScopeFlow                      // S->T.key
	ScopeCluster                   // X.key
)

// String lists the places as they are written in a file.
func (s Scope) String() string {
	var places []string
	if s&ScopeTop != 0 {
		places = append(places, "`key`")
	}
	if s&ScopeFlow != 0 {
		places = append(places, "`S->T.key`")
	}
	if s&ScopeCluster != 0 {
		places = append(places, "`X.key`")
	}
	return strings.Join(places, ", ")
}

// Effect is what a key does here.
type Effect uint8

// The effects of keys.
const (
	Honoured Effect = iota
	NoEffect        // accepted, and said to do nothing
	Refused         // the file is refused, unless the value is one that changes nothing
	Unread          // not of the catalogue's rows: it stands where nothing reads it
)

// Key is one row of the catalogue.
type Key struct {
	Name    string // ends in "*" where it stands for a family
	Type    Type
	Default string // heliograph's; empty where none
	Java    string // MirrorMaker's default where it differs
	Scope   Scope
	Values  []string // the only ones accepted; nil: any
	Since   string   // the Kafka release that brought it; empty: 2.4
	Until   string   // the last release that read it
	Effect  Effect
	Why     string // for NoEffect and Refused: the reason
	Doc     string
}

// matches says whether the row is about that name.
func (k *Key) matches(name string) bool {
	if family, ok := strings.CutSuffix(k.Name, "*"); ok {
		return strings.HasPrefix(name, family) && len(name) > len(family)
	}
	return k.Name == name
}

const flowOrTop = ScopeTop | ScopeFlow

// Catalogue is every key that may stand in a file outside of client layers.
// Exact names come before the families that would also match them.
func Catalogue() []Key {
	return slices.Concat(driverKeys, sourceKeys, checkpointKeys, heartbeatKeys, connectionKeys, workerKeys, frameworkKeys, ownKeys)
}

// ClientKeys is every key of a client layer: what may follow X.consumer.,
// X.producer., X.admin. and their flow-level forms.
func ClientKeys() []ClientKey { return clientKeys }

// catalogue indexes the table for one load.
type catalogue struct {
	exact    map[string]*Key
	families []*Key
	clients  map[string]*ClientKey
}

func newCatalogue() *catalogue { return theCatalogue() }

var theCatalogue = sync.OnceValue(makeCatalogue)

func makeCatalogue() *catalogue {
	c := &catalogue{exact: map[string]*Key{}, clients: map[string]*ClientKey{}}
	for _, k := range Catalogue() {
		if strings.HasSuffix(k.Name, "*") {
			c.families = append(c.families, &k)
		} else {
			c.exact[k.Name] = &k
		}
	}
	for _, k := range ClientKeys() {
		c.clients[k.Name] = &k
	}
	return c
}

// find returns the row for a name, or nil.
func (c *catalogue) find(name string) *Key {
	if k, ok := c.exact[name]; ok {
		return k
	}
	var best *Key
	for _, k := range c.families {
		if k.matches(name) && (best == nil || len(k.Name) > len(best.Name)) {
			best = k
		}
	}
	return best
}

// isConnectorKey says whether a top-level key reaches the connectors.
func (c *catalogue) isConnectorKey(name string) bool {
	k := c.find(name)
	return k != nil && k.Scope&flowOrTop == flowOrTop
}

// secret says whether the key's value must be hidden, at whatever place it stands.
func (c *catalogue) secret(name string) bool {
	for _, s := range secretSuffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// secretSuffixes end the names of keys that hold secrets, under every prefix.
var secretSuffixes = []string{
	"password", "sasl.jaas.config", "ssl.keystore.key", "secret", "token", ".passphrase", "credentials",
	"basic.auth.user.info", "access.key", "secret.key",
	"ssl.truststore.certificates", "ssl.keystore.certificate.chain", // no secrets, but nothing to print
}

// connectionNames are the keys that MirrorMaker copies into every client
// (CLIENT_KEYS of the specification).
var connectionNames = func() map[string]bool {
	names := map[string]bool{}
	for i := range connectionKeys {
		names[connectionKeys[i].Name] = true
	}
	return names
}()

// isConnectionKey says whether the key is one of those every client receives.
func isConnectionKey(name string) bool { return connectionNames[name] }
