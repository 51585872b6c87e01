package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// Event is one server-sent event.
type Event struct {
	ID, Name string
	Data     []byte
}

// maxEvent bounds one line of a stream.
const maxEvent = 8 << 20

// Stream calls f with every event of a stream until ctx ends, the server ends the
// stream, or f returns an error, which Stream then returns. A stream that ends by
// itself is io.EOF.
func (c *Client) Stream(ctx context.Context, r Request, f func(Event) error) error {
	res, err := c.send(ctx, r, "text/event-stream")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return &UnreachableError{Server: c.base.Host, cause: errors.New("the answer is no stream of events but " + kind)}
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var ev Event
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if len(ev.Data) > 0 {
				if err := f(ev); err != nil {
					return err
				}
			}
			ev = Event{ID: ev.ID}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name { // "" is a comment, which keeps the connection alive
		case "id":
			ev.ID = value
		case "event":
			ev.Name = value
		case "data":
			if len(ev.Data) > 0 {
				ev.Data = append(ev.Data, '\n')
			}
			ev.Data = append(ev.Data, value...)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return c.unreachable(err)
	}
	return io.EOF
}
