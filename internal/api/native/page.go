package native

import (
	"strconv"
	"strings"

	"heliograph/internal/control"
)

// PageInput is the part of a list that is asked for. It is exported for huma alone.
type PageInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most."`
	After string `query:"after" maxLength:"600" doc:"The next of the page before."`
}

// List is a page of things.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"Give it as after to go on; absent on the last page."`
}

// page cuts a list that is sorted by names, and shows what is on the page.
func page[T, V any](all []T, in PageInput, name func(*T) string, view func(*T) V) List[V] {
	from := 0
	if in.After != "" {
		for from < len(all) && name(&all[from]) <= in.After {
			from++
		}
	}
	items, out := all[from:], List[V]{Items: []V{}}
	if len(items) > in.Limit {
		items = items[:in.Limit]
		out.Next = name(&items[len(items)-1])
	}
	for i := range items {
		out.Items = append(out.Items, view(&items[i]))
	}
	return out
}

// MatchInput are the conditions of a write. It is exported for huma alone.
type MatchInput struct {
	IfMatch     string `header:"If-Match" maxLength:"64" doc:"The ETag that was read, or * for whatever is there."`
	IfNoneMatch string `header:"If-None-Match" maxLength:"64" doc:"* to create, and change nothing that is there."`
}

// match is what control expects. exists says that If-Match: * was given.
func (m MatchInput) match() (want control.Match, exists bool, err error) {
	switch {
	case m.IfNoneMatch != "" && m.IfNoneMatch != "*", m.IfNoneMatch != "" && m.IfMatch != "":
		return 0, false, refuse(400, "If-None-Match takes * only, and stands alone")
	case m.IfNoneMatch == "*":
		return control.Absent, false, nil
	case m.IfMatch == "*":
		return control.Any, true, nil
	case m.IfMatch == "":
		return control.Any, false, nil
	}
	n, err := strconv.ParseInt(strings.Trim(m.IfMatch, `"`), 10, 64)
	if err != nil || n <= 0 {
		return 0, false, refuse(412, "the ETag is none of this resource")
	}
	return control.Match(n), false, nil
}

func etag(r control.Revision) string { return `"` + strconv.FormatInt(int64(r), 10) + `"` }

// pageOfPairs cuts a list of flows. Its cursor is written "source/target", which no alias can hold.
func pageOfPairs[V any](all []control.Flow, in PageInput, view func(*control.Flow) V) List[V] {
	// NUL sorts before every letter of an alias, as control's order of pairs does.
	name := func(f *control.Flow) string { return f.Source + "\x00" + f.Target }
	in.After = strings.Replace(in.After, "/", "\x00", 1)
	out := page(all, in, name, view)
	out.Next = strings.Replace(out.Next, "\x00", "/", 1)
	return out
}
