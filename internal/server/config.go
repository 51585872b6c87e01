package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"heliograph/internal/config"
	"heliograph/internal/control"
)

// Config is the server's own configuration file.
type Config struct {
	Listen  string   `yaml:"listen" json:"listen,omitempty" doc:"Address of the APIs, host:port. Loopback by default."`
	Data    string   `yaml:"data" json:"data,omitempty" doc:"Directory of the store and of the admin token."`
	Hosts   []string `yaml:"hosts" json:"hosts,omitempty" doc:"Names by which clients call the server, for the Host check. Addresses, localhost and the machine's name are always taken."`
	TLS     *TLS     `yaml:"tls" json:"tls,omitempty" doc:"Serve HTTPS."`
	Store   *Store   `yaml:"store" json:"store,omitempty" doc:"Keep what the APIs change on a cluster, for several instances, instead of in the data directory."`
	Metrics string   `yaml:"metrics" json:"metrics,omitempty" doc:"Address of /metrics and /healthz without a token, for Prometheus. The APIs' address serves them too, /metrics with an admin token."`

	MemoryBytes    string `yaml:"memory" json:"memory,omitempty" doc:"Bound of all batches in memory, such as 256MiB."`
	BytesPerSecond string `yaml:"rate" json:"rate,omitempty" doc:"Cap of all flows together, such as 50MiB a second."`

	Files    []string          `yaml:"files" json:"files,omitempty" doc:"Files with clusters and flows: mm2.properties, or the native YAML form. The APIs show them read-only."`
	Defaults map[string]string `yaml:"defaults" json:"defaults,omitempty" doc:"What a file says without a prefix, for clusters and flows of the APIs. Replication factors are the target's default (-1) where nothing is said."`

	Tokens  []Token           `yaml:"tokens" json:"tokens,omitempty" doc:"Who may ask, besides the admin token of the data directory."`
	Tenants map[string]Tenant `yaml:"tenants" json:"tenants,omitempty" doc:"What the tokens of a tenant may use."`
	Links   []Link            `yaml:"links" json:"links,omitempty" doc:"Which clusters flows may join, by labels; absent, all."`
	Allow   Allow             `yaml:"allow" json:"allow,omitzero" doc:"What values that come by an API may make the server reach for; absent, nothing."`
	OVH     []OVHApplication  `yaml:"ovh" json:"ovh,omitempty" doc:"Applications for OVHcloud's API, with its request signature."`
}

// TLS is the server's certificate.
type TLS struct {
	Certificate string `yaml:"certificate" json:"certificate" doc:"PEM file with the chain."`
	Key         string `yaml:"key" json:"key" doc:"PEM file with the key."`
}

// Store is a cluster that keeps what the APIs change.
type Store struct {
	Cluster map[string]string `yaml:"cluster" json:"cluster" doc:"Kafka's client settings of the cluster, bootstrap.servers first."`
	Topic   string            `yaml:"topic" json:"topic,omitempty" doc:"A compacted topic with one partition, mm2-….internal; made if it is not there."`
	Factor  int16             `yaml:"replication_factor" json:"replication_factor,omitempty" doc:"Replication factor of a topic that is made; the cluster's default where absent."`
}

// Token is one that may ask.
type Token struct {
	Name   string   `yaml:"name" json:"name" doc:"For logs and events."`
	Tenant string   `yaml:"tenant" json:"tenant,omitempty" doc:"Whose it is; absent for the server's owner."`
	Scopes []string `yaml:"scopes" json:"scopes" enum:"read,write,admin" doc:"read sees, write changes, admin is all tenants'."`
	SHA256 string   `yaml:"sha256" json:"sha256,omitempty" doc:"The token's SHA-256 in hexadecimal."`
	File   string   `yaml:"file" json:"file,omitempty" doc:"Or a file that holds the token."`
}

// Tenant is what the tokens of a tenant may use.
type Tenant struct {
	Labels      map[string]string `yaml:"labels" json:"labels,omitempty" doc:"Put on all its clusters and flows."`
	Clusters    map[string]string `yaml:"clusters" json:"clusters,omitempty" doc:"Selects clusters of the server that it may use besides its own; absent, none; {} all."`
	MaxFlows    int               `yaml:"max_flows" json:"max_flows,omitempty" doc:"Bound of its flows; absent, none."`
	MaxClusters int               `yaml:"max_clusters" json:"max_clusters,omitempty" doc:"Bound of its own clusters; absent, none."`
	Rate        string            `yaml:"rate" json:"rate,omitempty" doc:"Cap of all its flows together, such as 10MiB a second."`
}

// Link allows flows between clusters with some labels.
type Link struct {
	From map[string]string `yaml:"from" json:"from,omitempty" doc:"Labels of the source; * stands for any value."`
	To   map[string]string `yaml:"to" json:"to,omitempty" doc:"Labels of the target; * stands for the same value as in from."`
}

// Allow is what API values may make the server reach for.
type Allow struct {
	Files          []string `yaml:"files" json:"files,omitempty" doc:"Files and directories for key stores and ${file:…}."`
	Environment    []string `yaml:"environment" json:"environment,omitempty" doc:"Variables for ${env:…}."`
	TokenEndpoints []string `yaml:"token_endpoints" json:"token_endpoints,omitempty" doc:"Addresses of OAuth token endpoints; what ends in / is a prefix."`
	Identity       bool     `yaml:"identity" json:"identity,omitempty" doc:"Logging in with the server's own cloud credentials (AWS_MSK_IAM)."`
}

// OVHApplication is an application key of OVHcloud's API with its secret.
type OVHApplication struct {
	Key       string        `yaml:"application_key" json:"application_key"`
	Secret    string        `yaml:"application_secret" json:"application_secret"`
	Consumers []OVHConsumer `yaml:"consumers" json:"consumers"`
}

// OVHConsumer is somebody for whom an application asks.
type OVHConsumer struct {
	Key     string   `yaml:"consumer_key" json:"consumer_key"`
	Project string   `yaml:"project" json:"project" doc:"The serviceName that it may name."`
	Tenant  string   `yaml:"tenant" json:"tenant,omitempty"`
	Scopes  []string `yaml:"scopes" json:"scopes,omitempty" enum:"read,write,admin" doc:"write where absent."`
}

// The server's defaults.
const (
	DefaultListen = "127.0.0.1:8083"
	DefaultData   = "heliograph-data"
)

// ReadConfig reads what --config names: the server's file, a file with flows, or a directory of
// such files, in which server.yaml is the server's. No name is an empty configuration.
func ReadConfig(name string) (*Config, error) {
	if name == "" {
		return &Config{}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readDirectory(name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if holdsFlows(name, data) {
		return &Config{Files: []string{name}}, nil
	}
	return parseConfig(name, data)
}

// serverFile is the server's own file in a directory.
const serverFile = "server.yaml"

func readDirectory(dir string) (*Config, error) {
	c := &Config{}
	data, err := os.ReadFile(filepath.Join(dir, serverFile))
	switch {
	case err == nil:
		if c, err = parseConfig(filepath.Join(dir, serverFile), data); err != nil {
			return nil, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch ext := filepath.Ext(e.Name()); {
		case e.Name() == serverFile, strings.HasPrefix(e.Name(), "."): // ..data of a mounted config map
		case ext == ".properties", ext == ".yaml", ext == ".yml":
			c.Files = append(c.Files, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(c.Files)
	c.Files = slices.Compact(c.Files)
	return c, nil
}

// holdsFlows tells a file with clusters and flows from the server's own.
func holdsFlows(name string, data []byte) bool {
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".yaml" && ext != ".yml" {
		return true
	}
	var top map[string]any
	if yaml.Unmarshal(data, &top) != nil {
		return false // the server's parser says what is wrong
	}
	_, clusters := top["clusters"]
	_, flows := top["flows"]
	return clusters || flows
}

func parseConfig(name string, data []byte) (*Config, error) {
	c := &Config{}
	if err := yaml.UnmarshalWithOptions(data, c, yaml.Strict()); err != nil {
		// The library shows the lines around the place, which may hold a secret.
		if located, ok := errors.AsType[yaml.Error](err); ok {
			at := name
			if tok := located.GetToken(); tok != nil && tok.Position != nil {
				at = fmt.Sprintf("%s:%d:%d", name, tok.Position.Line, tok.Position.Column)
			}
			return nil, fmt.Errorf("%s: %s", at, located.GetMessage())
		}
		return nil, fmt.Errorf("%s: it is not YAML that can be read", name)
	}
	for i, f := range c.Files {
		if !filepath.IsAbs(f) {
			c.Files[i] = filepath.Join(filepath.Dir(name), f)
		}
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// check finds what cannot be meant.
func (c *Config) check() error {
	var errs []error
	for _, size := range []struct{ key, text string }{{"memory", c.MemoryBytes}, {"rate", c.BytesPerSecond}} {
		if _, err := config.ParseSize(size.text); size.text != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", size.key, err))
		}
	}
	for name, t := range c.Tenants {
		if _, err := config.ParseSize(t.Rate); t.Rate != "" && err != nil {
			errs = append(errs, fmt.Errorf("tenants.%s.rate: %w", name, err))
		}
	}
	for i, t := range c.Tokens {
		at := fmt.Sprintf("tokens[%d]", i)
		if t.Name == "" {
			errs = append(errs, fmt.Errorf("%s.name: a name is needed", at))
		}
		if (t.SHA256 == "") == (t.File == "") {
			errs = append(errs, fmt.Errorf("%s: one of sha256 and file is needed", at))
		}
		if sum, err := hex.DecodeString(t.SHA256); t.SHA256 != "" && (err != nil || len(sum) != 32) {
			errs = append(errs, fmt.Errorf("%s.sha256: 64 hexadecimal digits are needed", at))
		}
		errs = append(errs, c.checkActor(at, t.Tenant, t.Scopes))
	}
	for i, a := range c.OVH {
		for j, u := range a.Consumers {
			errs = append(errs, c.checkActor(fmt.Sprintf("ovh[%d].consumers[%d]", i, j), u.Tenant, u.Scopes))
		}
	}
	if c.Store != nil && c.Store.Cluster["bootstrap.servers"] == "" {
		errs = append(errs, errors.New("store.cluster: bootstrap.servers is needed"))
	}
	if c.TLS != nil && (c.TLS.Certificate == "" || c.TLS.Key == "") {
		errs = append(errs, errors.New("tls: certificate and key are needed"))
	}
	return errors.Join(errs...)
}

func (c *Config) checkActor(at, tenant string, scopes []string) error {
	if _, ok := c.Tenants[tenant]; tenant != "" && !ok {
		return fmt.Errorf("%s.tenant: %q is not among the tenants", at, tenant)
	}
	for _, s := range scopes {
		switch control.Scope(s) {
		case control.ScopeRead, control.ScopeWrite:
		case control.ScopeAdmin:
			if tenant != "" {
				return fmt.Errorf("%s.scopes: admin is for the server's owner, not for a tenant", at)
			}
		default:
			return fmt.Errorf("%s.scopes: %q is none of read, write and admin", at, s)
		}
	}
	return nil
}

// size is a checked size; empty is zero.
func size(text string) int64 {
	if text == "" {
		return 0
	}
	n, _ := config.ParseSize(text) // check has read it
	return n
}

// policy is what control needs of the configuration.
func (c *Config) policy() control.Policy {
	p := control.Policy{
		Tenants: map[string]control.Tenant{}, Allow: control.Allow(c.Allow), Defaults: withTargetFactors(c.Defaults),
	}
	for name, t := range c.Tenants {
		p.Tenants[name] = control.Tenant{
			Labels: t.Labels, Clusters: t.Clusters, MaxFlows: t.MaxFlows, MaxClusters: t.MaxClusters, BytesPerSecond: size(t.Rate),
		}
	}
	for _, l := range c.Links {
		p.Links = append(p.Links, control.Link(l))
	}
	return p
}

// process is what the daemon needs of it.
func (c *Config) process() config.Process {
	p := config.Process{MemoryBytes: config.DefaultMemoryBytes, BytesPerSecond: size(c.BytesPerSecond)}
	if n := size(c.MemoryBytes); n > 0 {
		p.MemoryBytes = n
	}
	return p
}
