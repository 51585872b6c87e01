package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafka"
)

// scramIterations is how often a password is hashed; brokers take 4096 to 16384.
const scramIterations = 8192

// ScramUsers lists who has SCRAM credentials, in the order of their names
// (KIP-554, brokers from 2.7 on).
func (c *Client) ScramUsers(ctx context.Context) ([]kafka.ScramUser, error) {
	const op = "list users"
	described, err := c.adm.DescribeUserSCRAMs(ctx)
	if err != nil {
		return nil, c.fail(op, "", err)
	}
	var users []kafka.ScramUser
	for _, d := range described.Sorted() {
		if d.Err != nil {
			return nil, c.refusedUser(op, d.User, d.Err, d.ErrMessage)
		}
		u := kafka.ScramUser{Name: d.User}
		for _, info := range d.CredInfos {
			u.Mechanisms = append(u.Mechanisms, info.Mechanism.String())
		}
		slices.Sort(u.Mechanisms)
		users = append(users, u)
	}
	return users, nil
}

// scramMechanisms are those that Kafka has. A request may name a user once only,
// so each is a request of its own.
var scramMechanisms = []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512}

// SetScramPassword gives a user a password for SCRAM-SHA-256 and SCRAM-SHA-512,
// and makes the user where there is none. The password is salted here; it never
// travels. After an error the two mechanisms may have different passwords: set
// it again.
func (c *Client) SetScramPassword(ctx context.Context, user, password string) error {
	const op = "set password of user"
	for _, m := range scramMechanisms {
		upsert := kadm.UpsertSCRAM{User: user, Mechanism: m, Iterations: scramIterations, Password: password}
		altered, err := c.adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{upsert})
		if err := c.alteredUser(op, user, altered, err); err != nil {
			return err
		}
	}
	return nil
}

// DeleteScramUser removes the SCRAM credentials of a user as [Client.ScramUsers]
// lists it. What the ACLs grant to the name stays.
func (c *Client) DeleteScramUser(ctx context.Context, user kafka.ScramUser) error {
	const op = "delete user"
	for _, m := range scramMechanisms {
		if !slices.Contains(user.Mechanisms, m.String()) {
			continue
		}
		altered, err := c.adm.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: user.Name, Mechanism: m}}, nil)
		if err := c.alteredUser(op, user.Name, altered, err); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) alteredUser(op, user string, altered kadm.AlteredUserSCRAMs, err error) error {
	if err != nil {
		return c.fail(op, user, err)
	}
	got, ok := altered[user]
	if !ok {
		return c.fail(op, user, errLeftOut)
	}
	return c.refusedUser(op, user, got.Err, got.ErrMessage)
}

// refusedUser is fail with the broker's own words.
func (c *Client) refusedUser(op, user string, err error, message string) error {
	failed := c.fail(op, user, err)
	if e, ok := errors.AsType[*kafka.Error](failed); ok && e.Err == nil && message != "" {
		e.Err = errors.New(strings.TrimRight(message, "."))
	}
	return failed
}
