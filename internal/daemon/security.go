package daemon

import (
	"fmt"
	"net/url"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
)

// security translates a connection's settings. Secrets leave their hiding place
// here and nowhere else.
func security(c config.Connection) (cluster.Security, error) {
	s := cluster.Security{Protocol: string(c.Protocol)}
	if c.TLS != nil {
		s.TLS = tlsFiles(*c.TLS)
	}
	if c.SASL == nil {
		return s, nil
	}
	var err error
	s.SASL, err = login(*c.SASL)
	return s, err
}

func tlsFiles(t config.TLS) cluster.TLSFiles {
	f := cluster.TLSFiles{
		TrustStore:        store(t.Truststore),
		KeyStore:          store(t.Keystore),
		KeyPassword:       t.Keystore.KeyPassword.Reveal(),
		SkipHostNameCheck: !t.VerifyHostname,
	}
	const v12, v13 = "TLSv1.2", "TLSv1.3"
	switch {
	case t.MinVersion == v13:
		f.Protocols = []string{v13}
	case t.MaxVersion == v12:
		f.Protocols = []string{v12}
	}
	return f
}

func store(s config.Store) cluster.Store {
	pem := s.Certificate
	if key := s.Key.Reveal(); key != "" {
		pem += "\n" + key
	}
	return cluster.Store{Path: s.Location, Password: s.Password.Reveal(), PEM: pem}
}

func login(s config.SASL) (cluster.SASL, error) {
	l := cluster.SASL{Mechanism: s.Mechanism}
	switch c := s.Credential.(type) {
	case config.Plain:
		l.Username, l.Password = c.Username, c.Password.Reveal()
	case config.Scram:
		l.Username, l.Password, l.DelegationToken = c.Username, c.Password.Reveal(), c.TokenAuth
	case config.OAuth:
		l.OAuth = oauth(c)
	case config.Kerberos:
		if c.Keytab == "" {
			return l, fmt.Errorf("GSSAPI works with a keytab only: the JAAS entry names none (add keyTab and principal to sasl.jaas.config)")
		}
		l.Kerberos = cluster.Kerberos{ServiceName: c.ServiceName, Principal: c.Principal, Keytab: c.Keytab}
	case config.MSKIAM: // the credentials are in the environment
	}
	return l, nil
}

func oauth(c config.OAuth) cluster.OAuth {
	o := cluster.OAuth{
		TokenEndpoint: c.TokenEndpoint, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(),
		Scope: c.Scope, Extensions: c.Extensions,
		TLS: cluster.TLSFiles{TrustStore: cluster.Store{
			Path: c.TLS["ssl.truststore.location"], Password: c.TLS["ssl.truststore.password"],
			PEM: c.TLS["ssl.truststore.certificates"],
		}},
	}
	if c.TokenFile != "" {
		o.TokenEndpoint = (&url.URL{Scheme: "file", Path: c.TokenFile}).String()
	}
	return o
}
