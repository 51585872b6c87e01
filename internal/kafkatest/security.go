package kafkatest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// The user that every SASL listener knows, a super user where ACLs are on.
const (
	adminUser     = "admin"
	adminPassword = "admin-secret"
)

const oauthBearer = "OAUTHBEARER"

const oauthModule = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"

func (p Protocol) tls() bool { return p == SSL || p == SASLSSL }

func (p Protocol) sasl() bool { return p == SASLPlaintext || p == SASLSSL }

// secure adds what the listeners and the authorizer need.
func (c *Cluster) secure(props map[string]string) {
	for _, p := range c.opts.Listeners {
		prefix := "listener.name." + strings.ToLower(string(p)) + "."
		if p.sasl() {
			props[prefix+"sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
			props[prefix+"plain.sasl.jaas.config"] = c.plainUsers()
			const scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
			props[prefix+"scram-sha-256.sasl.jaas.config"] = scram
			props[prefix+"scram-sha-512.sasl.jaas.config"] = scram
			// The brokers believe unsigned tokens, as they do where nothing else is set.
			props[prefix+"oauthbearer.sasl.jaas.config"] = oauthModule + ";"
		}
		if p.tls() {
			props[prefix+"ssl.keystore.location"] = c.certs.ServerJKS
			props[prefix+"ssl.keystore.password"] = c.certs.Password
			props[prefix+"ssl.key.password"] = c.certs.Password
			props[prefix+"ssl.truststore.location"] = c.certs.TrustJKS
			props[prefix+"ssl.truststore.password"] = c.certs.Password
			if c.opts.ClientCertificates {
				props[prefix+"ssl.client.auth"] = "required"
			}
		}
	}
	if c.opts.Authorizer {
		props["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
		if c.release.kraft() {
			props["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		}
		props["super.users"] = "User:ANONYMOUS;User:" + adminUser
	}
}

func (c *Cluster) plainUsers() string {
	var b strings.Builder
	b.WriteString("org.apache.kafka.common.security.plain.PlainLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(c.opts.Users)) {
		fmt.Fprintf(&b, " user_%s=%s", user, quoteJAAS(c.opts.Users[user]))
	}
	return b.String() + ";"
}

// createScramUsers stores the users' SCRAM credentials. Releases before 2.7 take
// them through ZooKeeper only and get none; PLAIN works there.
func (c *Cluster) createScramUsers(ctx context.Context) error {
	if !slices.ContainsFunc(c.opts.Listeners, Protocol.sasl) || !c.release.atLeast(2, 7) {
		return nil
	}
	cl, err := c.Open()
	if err != nil {
		return err
	}
	defer cl.Close()
	// A request that names a user twice is refused, also for two mechanisms.
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		var upserts []kadm.UpsertSCRAM
		for _, user := range slices.Sorted(maps.Keys(c.opts.Users)) {
			upserts = append(upserts, kadm.UpsertSCRAM{User: user, Mechanism: mechanism, Iterations: 4096, Password: c.opts.Users[user]})
		}
		altered, err := kadm.NewClient(cl).AlterUserSCRAMs(ctx, nil, upserts)
		if err != nil {
			return fmt.Errorf("create scram users: %w", err)
		}
		for _, a := range altered {
			if a.Err != nil {
				return fmt.Errorf("create scram user %s: %w", a.User, a.Err)
			}
		}
	}
	return nil
}

// writeTokens writes a token of each user to a file, for OAUTHBEARER: unsigned, and
// good for a day.
func (c *Cluster) writeTokens() error {
	if !slices.ContainsFunc(c.opts.Listeners, Protocol.sasl) {
		return nil
	}
	part := base64.RawURLEncoding.EncodeToString
	now := time.Now()
	for user := range c.opts.Users {
		claims, err := json.Marshal(map[string]any{"sub": user, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(24 * time.Hour).Unix()})
		if err != nil {
			return err
		}
		token := part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "."
		if err := os.WriteFile(c.tokenFile(user), []byte(token), 0o600); err != nil {
			return fmt.Errorf("token of user %s: %w", user, err)
		}
	}
	return nil
}

func (c *Cluster) tokenFile(user string) string { return filepath.Join(c.dir, "token-"+user) }

// JAAS is the sasl.jaas.config of a client of this cluster, for PLAIN, SCRAM-SHA-256/512
// or OAUTHBEARER, whose token lies in a file.
func (c *Cluster) JAAS(mechanism, user string) string {
	if mechanism == oauthBearer {
		return oauthModule + ";"
	}
	module := "org.apache.kafka.common.security.plain.PlainLoginModule"
	if strings.HasPrefix(mechanism, "SCRAM-") {
		module = "org.apache.kafka.common.security.scram.ScramLoginModule"
	}
	return fmt.Sprintf("%s required username=%s password=%s;", module, quoteJAAS(user), quoteJAAS(c.opts.Users[user]))
}

// ClientProperties are the lines (key to value) that a Java client or a
// MirrorMaker file needs to reach the listener with a protocol as a SASL user.
// mechanism and user are ignored where the listener has no SASL.
func (c *Cluster) ClientProperties(p Protocol, mechanism, user string) map[string]string {
	props := map[string]string{"bootstrap.servers": c.BootstrapOf(p)}
	if p != Plaintext {
		props["security.protocol"] = string(p)
	}
	if p.sasl() {
		props["sasl.mechanism"] = mechanism
		props["sasl.jaas.config"] = c.JAAS(mechanism, user)
		if mechanism == oauthBearer {
			props["sasl.oauthbearer.token.endpoint.url"] = "file://" + c.tokenFile(user)
		}
	}
	if p.tls() {
		props["ssl.truststore.location"] = c.certs.TrustJKS
		props["ssl.truststore.password"] = c.certs.Password
		if c.opts.ClientCertificates {
			props["ssl.keystore.location"] = c.certs.ClientJKS
			props["ssl.keystore.password"] = c.certs.Password
			props["ssl.key.password"] = c.certs.Password
		}
	}
	return props
}
