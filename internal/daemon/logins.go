package daemon

import (
	"fmt"
	"reflect"

	"heliograph/internal/config"
)

// OtherLogins names the roles whose connection a file sets apart from the one
// that is used for their side. It is said at the start and by check; what else a
// file asks for in vain is among its problems.
func OtherLogins(f *config.Flow) []string {
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
