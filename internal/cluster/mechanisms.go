package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	krbclient "github.com/jcmturner/gokrb5/v8/client"
	krbconfig "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Kerberos is what Krb5LoginModule's options and sasl.kerberos.service.name say.
type Kerberos struct {
	ServiceName string // "kafka"
	Principal   string // user@REALM, or user with the default realm
	Keytab      string // path; the password is used without one
	ConfigPath  string // krb5.conf; $KRB5_CONFIG or /etc/krb5.conf without one
}

// AWS are static credentials of AWS_MSK_IAM. Without them the environment's
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN are read at
// every login.
type AWS struct {
	AccessKey    string
	SecretKey    string
	SessionToken string
}

// mechanism builds the login. What it can check without contacting anyone, it checks.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	switch strings.ToUpper(s.Mechanism) {
	case "PLAIN":
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism(), s.needUser()
	case "SCRAM-SHA-256":
		return s.scram().AsSha256Mechanism(), s.needUser()
	case "SCRAM-SHA-512":
		return s.scram().AsSha512Mechanism(), s.needUser()
	case "OAUTHBEARER":
		source, err := newTokenSource(s.OAuth)
		if err != nil {
			return nil, err
		}
		return oauth.Oauth(source.auth), nil
	case "GSSAPI":
		return s.kerberos()
	case "AWS_MSK_IAM":
		return aws.ManagedStreamingIAM(s.AWS.auth), nil
	case "":
		return nil, errors.New("no SASL mechanism is set; Kafka's default GSSAPI must be named")
	}
	return nil, fmt.Errorf("SASL mechanism %q is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM", s.Mechanism)
}

func (s SASL) needUser() error {
	if s.Username == "" {
		return fmt.Errorf("SASL mechanism %s needs a user name", s.Mechanism)
	}
	return nil
}

func (s SASL) scram() scram.Auth {
	return scram.Auth{User: s.Username, Pass: s.Password, IsToken: s.DelegationToken}
}

func (a AWS) auth(context.Context) (aws.Auth, error) {
	if a.AccessKey == "" {
		a = AWS{
			AccessKey:    os.Getenv("AWS_ACCESS_KEY_ID"),
			SecretKey:    os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		}
	}
	if a.AccessKey == "" || a.SecretKey == "" {
		return aws.Auth{}, errors.New("no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return aws.Auth{AccessKey: a.AccessKey, SecretKey: a.SecretKey, SessionToken: a.SessionToken}, nil
}

// kerberos builds a GSSAPI login that makes a fresh Kerberos client for each
// session: a shared one would renew its ticket on a goroutine nobody owns.
func (s SASL) kerberos() (sasl.Mechanism, error) {
	k := s.Kerberos
	if k.ServiceName == "" {
		return nil, errors.New("GSSAPI needs sasl.kerberos.service.name")
	}
	user, realm, _ := strings.Cut(k.Principal, "@")
	if user == "" {
		user = s.Username
	}
	if user == "" {
		return nil, errors.New("GSSAPI needs a principal")
	}
	path := k.ConfigPath
	if path == "" {
		path = os.Getenv("KRB5_CONFIG")
	}
	if path == "" {
		path = "/etc/krb5.conf"
	}
	cfg, err := krbconfig.Load(path)
	if err != nil {
		return nil, fmt.Errorf("kerberos configuration %s: %w", path, err)
	}
	if realm == "" {
		realm = cfg.LibDefaults.DefaultRealm
	}
	// FAST negotiation is off: Active Directory refuses it.
	settings := krbclient.DisablePAFXFAST(true)
	newClient := func(context.Context) *krbclient.Client {
		return krbclient.NewWithPassword(user, realm, s.Password, cfg, settings)
	}
	if k.Keytab != "" {
		tab, err := keytab.Load(k.Keytab)
		if err != nil {
			return nil, fmt.Errorf("keytab %s: %w", k.Keytab, err)
		}
		newClient = func(context.Context) *krbclient.Client {
			return krbclient.NewWithKeytab(user, realm, tab, cfg, settings)
		}
	}
	return kerberos.Auth{ClientFn: newClient, Service: k.ServiceName}.AsMechanism(), nil
}
