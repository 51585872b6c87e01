package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
)

// parseJSON reads one JSON value. Order, repeated names and the digits of
// numbers are kept, which a map would lose.
func parseJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	p := &jsonParser{dec: dec}
	for i, c := range data {
		if c == '\n' {
			p.ends = append(p.ends, i)
		}
	}
	n, err := p.value(0)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something stands behind the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: not JSON that can be read: %w", p.line(), err)
	}
	return n, nil
}

type jsonParser struct {
	dec   *json.Decoder
	ends  []int // offsets of line ends
	nodes int
}

// line is where the decoder stands.
func (p *jsonParser) line() int {
	return sort.SearchInts(p.ends, int(p.dec.InputOffset())) + 1
}

func (p *jsonParser) value(depth int) (*node, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	return p.after(tok, depth)
}

func (p *jsonParser) after(tok json.Token, depth int) (*node, error) {
	if p.nodes++; depth > maxDepth || p.nodes > maxNodes {
		return nil, errors.New("too large or too deep")
	}
	n := &node{kind: scalar, line: p.line()}
	switch t := tok.(type) {
	case nil:
		n.kind = null
	case string:
		n.text = t
	case json.Number:
		n.text = t.String()
	case bool:
		n.text = fmt.Sprint(t)
	case json.Delim:
		if t == '[' {
			return n, p.array(n, depth)
		}
		return n, p.object(n, depth)
	}
	return n, nil
}

func (p *jsonParser) array(n *node, depth int) error {
	n.kind = list
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.Token()
	return err
}

func (p *jsonParser) object(n *node, depth int) error {
	n.kind = object
	for p.dec.More() {
		name, err := p.dec.Token()
		if err != nil {
			return err
		}
		f := field{name: name.(string), line: p.line()} // the decoder lets nothing else be a name
		if f.value, err = p.value(depth + 1); err != nil {
			return err
		}
		n.fields = append(n.fields, f)
	}
	_, err := p.dec.Token()
	return err
}
