package importer

import (
	"fmt"
	"slices"
	"strings"
)

type kind uint8

const (
	null kind = iota
	scalar
	list
	object
)

// node is a JSON or YAML value with the line it stands on. Fields keep their
// order; of a repeated name all are kept.
type node struct {
	kind   kind
	text   string // of a scalar, as it is written
	items  []*node
	fields []field
	line   int
}

type field struct {
	name  string
	line  int
	value *node
}

// get is the last field of that name, or nil. Null counts as absent.
func (n *node) get(name string) *node {
	if n == nil || n.kind != object {
		return nil
	}
	for _, f := range slices.Backward(n.fields) {
		if f.name == name && f.value.kind != null {
			return f.value
		}
	}
	return nil
}

// path descends by names.
func (n *node) path(names ...string) *node {
	for _, name := range names {
		n = n.get(name)
	}
	return n
}

// word is the text of a scalar field, or "".
func (n *node) word(name string) string {
	if v := n.get(name); v != nil && v.kind == scalar {
		return v.text
	}
	return ""
}

// limits of what is read: no resource comes near them.
const (
	maxDepth = 64
	maxNodes = 200_000
)

// reading reads the fields of a node and remembers which were asked for, so that
// the rest can be named.
type reading struct {
	d     *draft
	node  *node
	at    origin
	taken map[string]bool
}

// open starts reading an object. A node of another kind is named and read as empty.
func (d *draft) open(n *node, at origin) *reading {
	r := &reading{d: d, node: n, at: at, taken: map[string]bool{}}
	if n != nil && n.kind != object && n.kind != null {
		d.missing(at, "an object must stand here")
		r.node = nil
	}
	return r
}

// place is where a field stands.
func (r *reading) place(name string) origin {
	line := 0
	if r.node != nil {
		for _, f := range r.node.fields {
			if f.name == name {
				line = f.line
			}
		}
	}
	return r.at.sub(name, line)
}

func (r *reading) get(name string) *node {
	r.taken[name] = true
	return r.node.get(name)
}

// text is a scalar field; what is none is named.
func (r *reading) text(name string) (string, bool) {
	v := r.get(name)
	if v == nil {
		return "", false
	}
	if v.kind != scalar {
		r.d.missing(r.place(name), "one value must stand here")
		return "", false
	}
	return v.text, true
}

// used is text for a field that lives on under another name.
func (r *reading) used(name, now string) string {
	text, ok := r.text(name)
	if ok {
		r.becomes(name, now)
	}
	return text
}

// becomes names a field that lives on under another name.
func (r *reading) becomes(name, now string) { r.d.changed(r.place(name), now, "") }

// idle names a field that means nothing here, with the reason.
func (r *reading) idle(why string, names ...string) {
	for _, name := range names {
		if v := r.get(name); v != nil {
			r.d.drop(r.place(name), why)
		}
	}
}

// others names every field with a value that nobody asked for, with the reason why it
// means nothing here.
func (r *reading) others(why string) {
	for _, f := range r.node.fields {
		if !r.taken[f.name] {
			r.idle(why, f.name)
		}
	}
}

// field takes a field over under its key.
func (r *reading) field(name, key string) {
	v := r.get(name)
	if v == nil {
		return
	}
	text, items, ok := v.value()
	if !ok {
		r.d.missing(r.place(name), "one value or a list of them must stand here")
		return
	}
	r.d.keep(setting{key: key, value: text, items: items, from: r.place(name)})
}

// open reads a field that is an object.
func (r *reading) open(name string) *reading { return r.d.open(r.get(name), r.place(name)) }

// list is the items of a field, each with its place.
func (r *reading) list(name string) ([]*node, []origin) {
	v := r.get(name)
	if v == nil {
		return nil, nil
	}
	if v.kind != list {
		r.d.missing(r.place(name), "a list must stand here")
		return nil, nil
	}
	return v.items, r.d.places(v, r.place(name))
}

func (d *draft) places(n *node, at origin) []origin {
	out := make([]origin, len(n.items))
	for i, item := range n.items {
		out[i] = at.sub(fmt.Sprintf("[%d]", i), item.line)
	}
	return out
}

// rest names every field that nobody asked for.
func (r *reading) rest() {
	if r.node == nil {
		return
	}
	for _, f := range r.node.fields {
		if !r.taken[f.name] {
			r.d.drop(r.at.sub(f.name, f.line), "not a field that import knows")
		}
	}
}

// value is a scalar, or a list of scalars, as a setting holds it.
func (n *node) value() (text string, items []string, ok bool) {
	switch n.kind {
	case scalar:
		return n.text, nil, true
	case null, object:
		return "", nil, false
	default:
		items = []string{}
		for _, item := range n.items {
			if item.kind != scalar {
				return "", nil, false
			}
			items = append(items, item.text)
		}
		return strings.Join(items, ","), items, true
	}
}
