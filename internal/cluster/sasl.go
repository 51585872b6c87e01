package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"heliograph/internal/kafka"
)

// maxLoginSteps ends a login that goes on for ever; the longest real one, SCRAM,
// has two steps.
const maxLoginSteps = 16

// login authenticates the link and learns when the login ends (KIP-368).
func (l *link) login(ctx context.Context) error {
	mechanism := l.client.creds.mechanism
	if mechanism == nil {
		return nil
	}
	err := l.authenticate(ctx, mechanism)
	if err == nil {
		l.client.gate.passed()
		return nil
	}
	var refused *kafka.Error
	if errors.As(err, &refused) && ctx.Err() == nil {
		l.client.gate.failed(refused.Code, refused.Err)
	}
	return err
}

func (l *link) authenticate(ctx context.Context, mechanism sasl.Mechanism) error {
	if err := l.announce(mechanism.Name()); err != nil {
		return err
	}
	session, message, err := mechanism.Authenticate(ctx, l.addr)
	if err != nil {
		return l.loginError(kafka.CodeNone, err)
	}
	for range maxLoginSteps {
		sent := time.Now()
		resp, err := l.exchange(message)
		if err != nil {
			return err
		}
		l.bound(sent, resp.SessionLifetimeMillis)
		done, next, err := session.Challenge(resp.SASLAuthBytes)
		if err != nil {
			return l.loginError(kafka.CodeNone, err)
		}
		// A mechanism may have a last message that has an answer of no interest.
		if done && len(next) > 0 {
			if resp, err = l.exchange(next); err == nil {
				l.bound(sent, resp.SessionLifetimeMillis)
			}
			return err
		}
		if done {
			return nil
		}
		message = next
	}
	return l.loginError(kafka.CodeNone, errors.New("the login does not come to an end"))
}

func (l *link) announce(mechanism string) error {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Version, req.Mechanism = 1, mechanism
	body, err := l.roundTrip(req)
	if err != nil {
		return err
	}
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.Version = 1
	if err := resp.ReadFrom(body); err != nil {
		return kbinError(err)
	}
	if resp.ErrorCode != 0 {
		return l.loginError(kafka.Code(resp.ErrorCode),
			fmt.Errorf("the listener offers %s, not %s", strings.Join(resp.SupportedMechanisms, ", "), mechanism))
	}
	return nil
}

func (l *link) exchange(message []byte) (*kmsg.SASLAuthenticateResponse, error) {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	// Version 1 tells the session's lifetime and is older than any broker we support.
	req.Version, req.SASLAuthBytes = 1, message
	body, err := l.roundTrip(req)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.Version = req.Version
	if err := resp.ReadFrom(body); err != nil {
		return nil, kbinError(err)
	}
	if resp.ErrorCode != 0 {
		cause := errors.New("the broker refused the credentials")
		if resp.ErrorMessage != nil && *resp.ErrorMessage != "" {
			cause = errors.New(*resp.ErrorMessage)
		}
		return nil, l.loginError(kafka.Code(resp.ErrorCode), cause)
	}
	return resp, nil
}

// bound notes when the login ends and when the next link should take over.
func (l *link) bound(from time.Time, lifetimeMillis int64) {
	if lifetimeMillis <= 0 {
		return
	}
	life := time.Duration(lifetimeMillis) * time.Millisecond
	l.ended = from.Add(life)
	l.reauth = from.Add(time.Duration(float64(life) * reauthAt))
}

// loginError is a refused login, or one that failed on our side: no token, no
// ticket, a server signature that does not fit. Broken connections are neither.
func (l *link) loginError(code kafka.Code, cause error) *kafka.Error {
	return &kafka.Error{
		Op: "log in", Cluster: l.client.opts.Alias, Subject: l.addr, Code: code,
		Class: kafka.ClassOperator, Err: cause, Hint: hints[code],
	}
}
