package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlSections are what the native form consists of.
var yamlSections = []string{"clusters", "flows", "defaults"}

// yamlReader turns the native form into the entries of a properties file, so
// that both forms go the same way from there on and mean the same.
type yamlReader struct {
	report
	file    string
	entries []Entry
}

// parseYAML reads the native form:
//
//	defaults: keys that stand without a prefix in mm2.properties
//	clusters: alias → the cluster's keys
//	flows:    S->T → the flow's keys; a flow is enabled unless it says otherwise
//
// Keys may be nested at their dots, and lists are real lists.
func parseYAML(file string, data []byte) ([]Entry, Problems) {
	y := &yamlReader{file: file}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		y.syntaxError(err)
		return nil, y.problems
	}
	var body ast.Node
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			y.errorf(y.at(d.Body, ""), "keep one", "a second YAML document")
			break
		}
		body = d.Body
	}
	if body == nil {
		return nil, y.problems
	}
	for _, section := range y.mapping(body, "") {
		name, _ := y.scalar(section.Key)
		switch name {
		case "clusters":
			y.clusters(section)
		case "flows":
			for _, flow := range y.mapping(section.Value, name) {
				y.flow(flow)
			}
		case "defaults":
			y.tree(section.Value, "")
		default:
			if y.shorthand(section.Key, name) {
				continue
			}
			hint := "the sections are " + strings.Join(yamlSections, ", ")
			if meant := suggest(name, yamlSections); meant != "" {
				hint = "did you mean " + meant + "? " + hint
			} else if newCatalogue().find(name) != nil {
				hint = "write it under defaults; " + hint
			}
			y.errorf(y.at(section.Key, name), hint, "not a section of the native form")
		}
	}
	return y.entries, y.problems
}

func (y *yamlReader) at(n ast.Node, key string) Origin {
	o := Origin{File: y.file, Key: key}
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		o.Line, o.Column = tok.Position.Line, tok.Position.Column
	}
	return o
}

// syntaxError keeps the parser's place and drops the excerpt of the file, which
// may show a secret.
func (y *yamlReader) syntaxError(err error) {
	at, message := Origin{File: y.file}, "not YAML that can be read"
	if located, ok := errors.AsType[yaml.Error](err); ok {
		if tok := located.GetToken(); tok != nil && tok.Position != nil {
			at.Line, at.Column = tok.Position.Line, tok.Position.Column
		}
		message = located.GetMessage()
		// What it quotes is the file's own text.
		if first, last := strings.Index(message, `"`), strings.LastIndex(message, `"`); first >= 0 {
			message = strings.TrimRight(message[:first], " :") + message[last+1:]
		}
	}
	y.errorf(at, "", "%s", message)
}

// mapping returns the pairs of a mapping; anything else is a problem.
func (y *yamlReader) mapping(n ast.Node, key string) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	case *ast.NullNode:
		return nil
	}
	if !y.shorthand(n, key) {
		y.errorf(y.at(n, key), "", "keys and values must stand here")
	}
	return nil
}

// shorthand refuses what stands for something else in YAML, and says whether it did.
func (y *yamlReader) shorthand(n ast.Node, key string) bool {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		y.errorf(y.at(n, key), "write the value itself", "anchors, aliases, merge keys and tags are not read")
		return true
	}
	return false
}

func (y *yamlReader) clusters(section *ast.MappingValueNode) {
	list := Entry{Key: "clusters", Items: []string{}, Origin: y.at(section.Key, "clusters")}
	for _, c := range y.mapping(section.Value, "clusters") {
		alias, ok := y.scalar(c.Key)
		if !ok {
			if !y.shorthand(c.Key, "clusters") {
				y.errorf(y.at(c.Key, "clusters"), "", "an alias must be plain text")
			}
			continue
		}
		list.Items = append(list.Items, alias)
		y.tree(c.Value, alias)
	}
	list.Value = strings.Join(list.Items, ", ")
	y.entries = append(y.entries, list)
}

// flow reads one flow, which is enabled by being there.
func (y *yamlReader) flow(f *ast.MappingValueNode) {
	name, ok := y.scalar(f.Key)
	if !ok || !strings.Contains(name, "->") {
		y.errorf(y.at(f.Key, "flows"), "", "a flow is called S->T")
		return
	}
	source, target, _ := strings.Cut(name, "->")
	prefix := strings.TrimSpace(source) + "->" + strings.TrimSpace(target)
	if _, empty := f.Value.(*ast.NullNode); !empty {
		y.tree(f.Value, prefix)
	}
	key := prefix + ".enabled"
	if !slices.ContainsFunc(y.entries, func(e Entry) bool { return e.Key == key }) {
		y.entries = append(y.entries, Entry{Key: key, Value: "true", Origin: y.at(f.Key, key)})
	}
}

// tree reads keys, nested or not, below a prefix.
func (y *yamlReader) tree(n ast.Node, prefix string) {
	for _, pair := range y.mapping(n, prefix) {
		name, ok := y.scalar(pair.Key)
		if !ok {
			if !y.shorthand(pair.Key, prefix) {
				y.errorf(y.at(pair.Key, prefix), "", "a key must be plain text")
			}
			continue
		}
		key := name
		if prefix != "" {
			key = prefix + "." + name
		}
		y.leaf(key, pair)
	}
}

func (y *yamlReader) leaf(key string, pair *ast.MappingValueNode) {
	switch v := pair.Value.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		y.tree(v, key)
		return
	case *ast.NullNode:
		y.errorf(y.at(pair.Key, key), `write "" for an empty text or [] for an empty list`, "it has no value")
		return
	case *ast.SequenceNode:
		items := []string{}
		for _, item := range v.Values {
			text, ok := y.item(item)
			if !ok {
				if !y.shorthand(item, key) {
					y.errorf(y.at(item, key), "", "an item of a list must be plain text")
				}
				return
			}
			items = append(items, text)
		}
		y.add(Entry{Key: key, Value: strings.Join(items, ", "), Items: items, Origin: y.at(pair.Key, key)})
		return
	}
	text, ok := y.scalar(pair.Value)
	if !ok {
		if !y.shorthand(pair.Value, key) {
			y.errorf(y.at(pair.Value, key), "", "a value must be plain text, a list, or keys and values")
		}
		return
	}
	y.add(Entry{Key: key, Value: text, Origin: y.at(pair.Key, key)})
}

func (y *yamlReader) add(e Entry) {
	if i := slices.IndexFunc(y.entries, func(o Entry) bool { return o.Key == e.Key }); i >= 0 {
		y.errorf(e.Origin, "", "%s stands on line %d already", e.Key, y.entries[i].Origin.Line)
		return
	}
	y.entries = append(y.entries, e)
}

// item is the text of a list's item. Inside {…} the parser takes a1:9092 for a
// key and its value; to YAML it is one text unless a blank follows the colon.
func (y *yamlReader) item(n ast.Node) (string, bool) {
	pair, ok := n.(*ast.MappingValueNode)
	if m, is := n.(*ast.MappingNode); is && len(m.Values) == 1 && m.Start.Type != token.MappingStartType {
		pair, ok = m.Values[0], true
	}
	if !ok {
		return y.scalar(n)
	}
	key, value, colon := pair.Key.GetToken(), pair.Value.GetToken(), pair.Start
	if key.Type != token.StringType && key.Type != token.IntegerType || value.Position.Line != colon.Position.Line || value.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	text, ok := y.scalar(pair.Value)
	return key.Value + ":" + text, ok
}

// scalar is the text of a plain value as it is written.
func (y *yamlReader) scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	case *ast.InfinityNode, *ast.NanNode:
		return fmt.Sprint(v.GetToken().Value), true
	}
	return "", false
}
