package jsonobject

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestObjectsAreTakenApartByName(t *testing.T) {
	o := Parse([]byte(`{"name": "x", "on": true, "n": 3, "list": [" a.* ", "b"], "none": null, "word": "up"}`))
	name := o.Required("name")
	on, _ := o.Flag("on")
	n, _ := o.Within("n", 1, 3)
	list, _ := o.Patterns("list")
	_, none := o.Text("none")
	word, given := o.Enum("word", "up", "down")
	if err := o.Done(); err != nil || name != "x" || !on || n != 3 || strings.Join(list, "|") != "a.*|b" || none || word != "up" || !given {
		t.Errorf("%q %v %d %q %v %q, %v", name, on, n, list, none, word, err)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for body, want := range map[string]string{
		``:                   "the body is not a JSON object",
		`3`:                  "the body is not a JSON object",
		`{"n": 1`:            "not JSON",
		`{"n": }`:            "[n] is not JSON",
		`{"n": 1} x`:         "behind",
		`{"n": 1, "n": 2}`:   "[n] is given twice",
		`{"n": 4}`:           "[n] must be 1 to 3",
		`{"n": 1.0}`:         "[n] given data (1.0)",
		`{"N": 1}`:           "[N] is not a field",
		`{"list": ["a\nb"]}`: "[list]",
		`{"list": [null]}`:   "[list]",
		`{"list": ["a,b"]}`:  "[list]",
		`{"list": ["` + strings.Repeat("ü", 99) + `", 3]}`: "…",
	} {
		o := Parse([]byte(body))
		o.Within("n", 1, 3)
		o.Patterns("list")
		if err := o.Done(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// FuzzParse: what is accepted is JSON, and every field of it was asked for.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name": "x", "list": ["a"]}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`{} {}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := Parse(data)
		o.Text("name")
		o.Patterns("list")
		if err := o.Done(); err != nil {
			return
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		delete(fields, "name")
		delete(fields, "list")
		if len(fields) > 0 {
			t.Errorf("accepted %q with %v", data, fields)
		}
	})
}
