package ovh

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
)

// user is cloud.project.database.service.User, and UserWithPassword where there is
// a password to tell. Kafka does not remember when a user was made.
type user struct {
	ID        string     `json:"id"`
	Username  string     `json:"username"`
	Status    status     `json:"status"`
	CreatedAt *time.Time `json:"createdAt"`
	Password  string     `json:"password,omitempty"`
}

var userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

func userAnswer(k kafkaService, name string) user {
	return user{ID: idOf("user", k.alias, name), Username: name, Status: statusReady}
}

func listUsers(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	users, err := cl.ScramUsers(c.Context())
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, u := range users {
		ids = append(ids, userAnswer(k, u.Name).ID)
	}
	return ids, nil
}

// userOf is the user that the path names.
func userOf(c *call, k kafkaService, cl *cluster.Client) (kafka.ScramUser, error) {
	id := c.PathValue("userId")
	users, err := cl.ScramUsers(c.Context())
	if err != nil {
		return kafka.ScramUser{}, err
	}
	for _, u := range users {
		if userAnswer(k, u.Name).ID == id {
			return u, nil
		}
	}
	return kafka.ScramUser{}, notFound(classUserNotFound, "there is no user %s on Kafka service %s", id, k.id)
}

func getUser(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	u, err := userOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	return userAnswer(k, u.Name), nil
}

func (h *Handler) createUser(c *call) (any, error) {
	b := c.body()
	name := b.Required("name")
	if err := b.Done(); err != nil {
		return nil, err
	}
	if !userPattern.MatchString(name) {
		return nil, &Error{Status: http.StatusBadRequest, Class: classUserName, Message: "[name] letters, digits, dots, underscores and dashes, at most 64, not starting with a dot or a dash"}
	}
	k, cl, err := h.open(c)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	users, err := cl.ScramUsers(c.Context())
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(users, func(u kafka.ScramUser) bool { return u.Name == name }) {
		return nil, conflict("[name] there is a user %s on Kafka service %s already", name, k.id)
	}
	out, err := withPassword(c.Context(), k, cl, name)
	if err != nil {
		return nil, err
	}
	out.CreatedAt = new(h.o.Now().UTC())
	return out, nil
}

// withPassword gives a user a new password.
func withPassword(ctx context.Context, k kafkaService, cl *cluster.Client, name string) (user, error) {
	u := userAnswer(k, name)
	u.Password = rand.Text()
	return u, cl.SetScramPassword(ctx, name, u.Password)
}

func (h *Handler) resetPassword(c *call) (any, error) {
	if len(c.data) > 0 {
		if err := c.body().Done(); err != nil {
			return nil, err
		}
	}
	k, cl, err := h.open(c)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	u, err := userOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	out, err := withPassword(c.Context(), k, cl, u.Name)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func deleteUser(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	u, err := userOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	return nil, cl.DeleteScramUser(c.Context(), u)
}

func (h *Handler) noCertificates(c *call) (any, error) {
	if _, err := h.kafkaOf(c); err != nil {
		return nil, err
	}
	return nil, forbidden("heliograph issues no certificates: the users that it makes log in with SCRAM")
}
