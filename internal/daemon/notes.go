package daemon

import (
	"fmt"
	"reflect"

	"heliograph/internal/config"
)

// Unapplied names what a flow's file asks for and this build does not do. It is
// said at the start and by check, so that nothing is dropped in silence.
func Unapplied(f *config.Flow) []string {
	var out []string
	add := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(f.Data.FetchMinBytes.Set, "fetch.min.bytes: a fetch is answered as soon as there is a record")
	add(len(f.Positions.TopicConfigs) > 0, "offset.storage.*: topic settings of the positions topic are not applied")
	source, target := Sides(f)
	for _, s := range []Side{source, target} {
		c := s.Client
		for _, k := range []struct {
			key string
			set bool
		}{
			{"connections.max.idle.ms", c.MaxIdle.Set},
			{"reconnect.backoff.ms", c.ReconnectBackoff.Set},
			{"reconnect.backoff.max.ms", c.ReconnectMax.Set},
			{"retry.backoff.ms", c.RetryBackoff.Set},
			{"send.buffer.bytes", c.SendBufferBytes.Set},
			{"receive.buffer.bytes", c.ReceiveBufferBytes.Set},
		} {
			add(k.set, "%s of %s: connections follow heliograph's own rule", k.key, s.Alias)
		}
	}
	return append(out, otherLogins(f)...)
}

// otherLogins names the roles whose connection a file sets apart from the one
// that is used for their side.
func otherLogins(f *config.Flow) []string {
	source, target := Sides(f)
	var notes []string
	for _, r := range []struct {
		role string
		has  config.Client
		used Side
	}{
		{"source.admin", f.Clients.SourceAdmin, source},
		{"source.producer", f.Clients.SourceProducer, source},
		{"target.admin", f.Clients.TargetAdmin, target},
		{"target.consumer", f.Clients.TargetConsumer, target},
		{"the worker", f.Clients.Worker, target},
	} {
		if !reflect.DeepEqual(r.has.Connection, r.used.Client.Connection) {
			notes = append(notes, fmt.Sprintf(
				"%s has a connection of its own in the file: one login per cluster is used, that of the records' client on %s",
				r.role, r.used.Alias))
		}
	}
	return notes
}
