package importer

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parseYAML reads all documents of a file.
func parseYAML(data []byte) (docs []*node, err error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		// The parser's own text may show a line of the file, and with it a secret.
		message, line := "not YAML that can be read", 0
		if located, ok := errors.AsType[yaml.Error](err); ok {
			message = located.GetMessage()
			if tok := located.GetToken(); tok != nil && tok.Position != nil {
				line = tok.Position.Line
			}
		}
		return nil, fmt.Errorf("line %d: %s", line, message)
	}
	p := &yamlParser{anchors: map[string]ast.Node{}}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n, err := p.value(doc.Body, 0)
		if err != nil {
			return nil, err
		}
		if n.kind != null {
			docs = append(docs, n)
		}
	}
	return docs, nil
}

type yamlParser struct {
	anchors map[string]ast.Node
	nodes   int
}

func (p *yamlParser) value(n ast.Node, depth int) (*node, error) {
	out := &node{kind: scalar}
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		out.line = tok.Position.Line
	}
	if p.nodes++; depth > maxDepth || p.nodes > maxNodes {
		return nil, fmt.Errorf("line %d: too large or too deep", out.line)
	}
	switch v := n.(type) {
	case *ast.NullNode:
		out.kind = null
	case *ast.StringNode:
		out.text = v.Value
	case *ast.LiteralNode:
		out.text = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.text = n.GetToken().Value
	case *ast.TagNode:
		return p.value(v.Value, depth+1)
	case *ast.AnchorNode:
		p.anchors[v.Name.GetToken().Value] = v.Value
		return p.value(v.Value, depth+1)
	case *ast.AliasNode:
		to, ok := p.anchors[v.Value.GetToken().Value]
		if !ok {
			return nil, fmt.Errorf("line %d: an alias without its anchor", out.line)
		}
		return p.value(to, depth+1)
	case *ast.SequenceNode:
		out.kind = list
		for _, item := range v.Values {
			child, err := p.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, child)
		}
	case *ast.MappingNode:
		return out, p.fields(out, v.Values, depth)
	case *ast.MappingValueNode:
		return out, p.fields(out, []*ast.MappingValueNode{v}, depth)
	default:
		return nil, fmt.Errorf("line %d: something that cannot be read here", out.line)
	}
	return out, nil
}

func (p *yamlParser) fields(out *node, pairs []*ast.MappingValueNode, depth int) error {
	out.kind = object
	var merged []field
	for _, pair := range pairs {
		child, err := p.value(pair.Value, depth+1)
		if err != nil {
			return err
		}
		if _, ok := pair.Key.(*ast.MergeKeyNode); ok {
			merged = append(merged, child.fields...) // a key of its own beats it, wherever it stands
			continue
		}
		name, err := p.value(pair.Key, depth+1)
		if err != nil {
			return err
		}
		if name.kind != scalar {
			return fmt.Errorf("line %d: a name must be plain text", name.line)
		}
		out.fields = append(out.fields, field{name: name.text, line: name.line, value: child})
	}
	out.fields = append(merged, out.fields...)
	return nil
}
