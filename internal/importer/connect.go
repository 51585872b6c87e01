package importer

import (
	"fmt"
	"slices"
	"strings"
)

// readConnect reads connectors in every shape that Kafka Connect takes or gives:
// a bare configuration, {name, config}, a list of them, and the answer of
// GET /connectors?expand=info&expand=status.
func readConnect(d *draft, inputs []input) {
	var all []connector
	for _, in := range inputs {
		at := origin{file: in.Name}
		for _, doc := range in.docs {
			found := connectorsIn(doc)
			if len(found) == 0 {
				d.missing(at, "no connector in it")
			}
			for _, f := range found {
				if c, ok := d.readConnector(f, at); ok {
					all = append(all, c)
				}
			}
			d.notConnectors(doc, found, at)
		}
	}
	d.joinConnectors(all)
	if len(all) > 0 {
		d.remark(origin{}, "positions stay in the Connect cluster's offset.storage.topic under the connector's name, "+takeover)
	}
}

// notConnectors names the fields of an answer about all connectors that hold none.
func (d *draft) notConnectors(doc *node, found []foundConnector, at origin) {
	if doc.kind != object || doc.get("connector.class") != nil || doc.path("config", "connector.class") != nil {
		return
	}
	for _, f := range doc.fields {
		if !slices.ContainsFunc(found, func(c foundConnector) bool { return c.name == f.name }) {
			d.drop(at.sub(f.name, f.line), "not a connector")
		}
	}
}

// foundConnector is a connector's configuration in a document, with what stands around it.
type foundConnector struct {
	config *node
	around []*node // the objects that hold it, outermost first
	name   string  // of the field or item that it stands in
	state  string
}

// connectorsIn finds configurations by their connector.class.
func connectorsIn(n *node) []foundConnector {
	if n == nil {
		return nil
	}
	switch {
	case n.kind == list:
		var all []foundConnector
		for i, item := range n.items {
			for _, f := range connectorsIn(item) {
				f.name = strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, f.name), ".")
				all = append(all, f)
			}
		}
		return all
	case n.word("connector.class") != "":
		return []foundConnector{{config: n}}
	case n.path("config", "connector.class") != nil:
		return []foundConnector{{config: n.get("config"), around: []*node{n}, name: "config", state: n.word("initial_state")}}
	case n.kind != object:
		return nil
	}
	var all []foundConnector
	for _, f := range n.fields {
		info := f.value.get("info")
		if info.path("config", "connector.class") == nil {
			continue
		}
		state := ""
		if c := f.value.path("status", "connector"); c != nil {
			state = c.word("state")
		}
		all = append(all, foundConnector{config: info.get("config"), around: []*node{f.value, info}, name: f.name, state: state})
	}
	return all
}

// readConnector names every field; it reports false for connectors that are not MirrorMaker's.
func (d *draft) readConnector(f foundConnector, at origin) (connector, bool) {
	at = at.sub(f.name, f.config.line)
	if f.name == "config" || f.name == "" {
		at.path = ""
	}
	class := f.config.word("connector.class")
	c := connector{class: simpleClass(class), at: at, off: offState(f.state)}
	if name := f.config.word("name"); name != "" && c.at.path == "" {
		c.at.path = name
	}
	if c.class != sourceConnector && c.class != checkpointConnector && c.class != heartbeatConnector {
		d.drop(at.sub("connector.class", f.config.line), oneLine(class)+" is not one of MirrorMaker's connectors; it is left alone")
		return c, false
	}
	for _, n := range f.around {
		r := d.open(n, at)
		r.taken["config"], r.taken["info"] = true, true
		r.idle("flows are named by their clusters", "name")
		r.idle("Connect's own account of what runs", "tasks", "type", "status")
		if r.get("initial_state") != nil {
			d.changed(r.place("initial_state"), "enabled", "")
		}
		r.rest()
	}
	c.config = d.flat(f.config, at)
	return c, true
}

// flat are the fields of a flat object as settings; of a repeated name the last one holds.
func (d *draft) flat(n *node, at origin) []setting {
	var out []setting
	if n == nil || n.kind != object {
		return nil
	}
	last := map[string]int{}
	for i, f := range n.fields {
		last[f.name] = i
	}
	for i, f := range n.fields {
		where := at.sub(f.name, f.line)
		if last[f.name] != i {
			d.drop(where, "written again below, where it holds")
			continue
		}
		text, items, ok := f.value.value()
		switch {
		case f.value.kind == null:
			d.drop(where, "it has no value")
		case !ok:
			d.missing(where, "a value must be plain text, a number, true or false")
		default:
			s := setting{key: f.name, value: text, items: items, from: where, verdict: Kept}
			if items == nil && text != trim(text) {
				s.because("blanks around the value are left out")
			}
			out = append(out, s)
		}
	}
	return out
}

func simpleClass(class string) string {
	class = trim(class)
	return class[strings.LastIndexByte(class, '.')+1:]
}

// offState says why a connector in that state copies nothing; empty if it does.
func offState(state string) string {
	switch strings.ToLower(state) {
	case "paused":
		return "it is paused"
	case "stopped":
		return "it is stopped"
	}
	return ""
}
