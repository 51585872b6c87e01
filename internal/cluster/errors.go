package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"heliograph/internal/kafka"
)

// hints say what to do about the codes that people meet.
var hints = map[kafka.Code]string{
	kafka.CodeTopicAuthorizationFailed:           "grant this principal the operation on the topic",
	kafka.CodeGroupAuthorizationFailed:           "grant this principal the operation on the group",
	kafka.CodeClusterAuthorizationFailed:         "grant this principal the operation on the cluster resource",
	kafka.CodeTransactionalIDAuthorizationFailed: "grant this principal WRITE and DESCRIBE on the transactional id",
	kafka.CodeSecurityDisabled:                   "the cluster has no authorizer, so it has no ACLs to read or write",
	kafka.CodeUnsupportedVersion:                 "the brokers are too old for this request",
	kafka.CodeInvalidReplicationFactor:           "fewer brokers are up than the replication factor asks for",
	kafka.CodePolicyViolation:                    "a policy of the cluster refuses this",
	kafka.CodeMessageTooLarge:                    "raise max.message.bytes of the topic",
	kafka.CodeSASLAuthenticationFailed:           "check the user name and the password",
	kafka.CodeUnsupportedSASLMechanism:           "the listener does not offer this SASL mechanism",
}

// fail turns any error into a *kafka.Error of this cluster. It also tells the
// gate when a login made through franz-go was refused.
func (c *Client) fail(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	out := &kafka.Error{Op: op, Cluster: c.opts.Alias, Subject: subject, Err: err}
	if inner, ok := errors.AsType[*kafka.Error](err); ok {
		out.Class, out.Code = kafka.ClassOf(inner), kafka.CodeNone
		if inner.Cluster == out.Cluster && inner.Op == op && inner.Subject == subject {
			return inner
		}
		// What franz-go wrapped around our own dial errors says nothing new.
		out.Err = inner
		return out
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		out.Code, out.Hint = kafka.Code(ke.Code), hints[kafka.Code(ke.Code)]
		out.Err = nil
		if isLoginCode(out.Code) {
			out.Class = kafka.ClassOperator
			c.gate.failed(out.Code, errors.New(strings.TrimRight(ke.Description, ".")))
		}
		return out
	}
	if err == context.DeadlineExceeded { //nolint:errorlint // only the bare one lacks a reason
		out.Err = errors.New("no broker answered in time")
		out.Hint = "check that the brokers are up and reachable"
	}
	return out
}

// answered makes the error of a broker's answer; nil for CodeNone. message is
// the broker's own text, where it sent one.
func (c *Client) answered(op, subject string, code int16, message *string) error {
	k := kafka.Code(code)
	if k == kafka.CodeNone {
		return nil
	}
	e := &kafka.Error{Op: op, Cluster: c.opts.Alias, Subject: subject, Code: k, Hint: hints[k]}
	if message != nil && *message != "" {
		e.Err = errors.New(strings.TrimRight(*message, "."))
	}
	return e
}

func isLoginCode(code kafka.Code) bool {
	return code == kafka.CodeSASLAuthenticationFailed || code == kafka.CodeUnsupportedSASLMechanism ||
		code == kafka.CodeIllegalSASLState
}

// explainTLS says in one clause why a handshake failed, and what to do.
func explainTLS(err error, now time.Time) (reason, hint string) {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &name):
		return "the certificate is not for this host name: " + name.Error(),
			"connect by a name in the certificate, or set ssl.endpoint.identification.algorithm to nothing"
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority", "add the authority to ssl.truststore.location"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if now.Before(invalid.Cert.NotBefore) {
			return "the certificate is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339), "check this machine's clock"
		}
		return "the certificate expired at " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339), "renew the broker's certificate"
	case errors.As(err, &record):
		return "the listener does not speak TLS", "use its security.protocol, PLAINTEXT or SASL_PLAINTEXT, or its TLS port"
	case errors.As(err, &alert):
		return "the broker refused the handshake: " + alert.Error(), "check ssl.keystore.location if the broker wants a client certificate"
	case errors.Is(err, io.EOF), isReset(err):
		return "the listener ended the connection during the TLS handshake", "it may not speak TLS, or want a client certificate (ssl.keystore.location)"
	}
	return err.Error(), ""
}

func isReset(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "read" && !op.Timeout()
}

var errSpeaksTLS = errors.New("the listener speaks TLS; set security.protocol to SSL or SASL_SSL")

// errNotKafka explains the first bytes of something that is no Kafka answer.
func errNotKafka(size uint32, limit int32) error {
	switch {
	case size>>16 == 0x1503: // a TLS alert record
		return errSpeaksTLS
	case size == 0x48545450: // "HTTP"
		return errors.New("the listener speaks HTTP, not Kafka")
	}
	return fmt.Errorf("an answer of %d bytes is over the limit of %d", size, limit)
}
