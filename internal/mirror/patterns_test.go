package mirror

import (
	"bufio"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// javaTable reads testdata/javaregex.txt: what java.util.regex answered.
func javaTable(t *testing.T) (names []string, rows [][]string) {
	t.Helper()
	f, err := os.Open("testdata/javaregex.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := strings.Split(lines.Text(), "\t")
		for i := 1; i < len(fields); i++ {
			if fields[i], err = strconv.Unquote(fields[i]); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
		}
		if fields[0] == "names" {
			names = fields[1:]
			continue
		}
		rows = append(rows, fields)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 || len(rows) < 500 {
		t.Fatalf("the table has %d names and %d rows", len(names), len(rows))
	}
	return names, rows
}

// A thousand patterns must mean what they mean to Java, or be refused where
// Java refuses them.
func TestPatternsAgreeWithJava(t *testing.T) {
	names, rows := javaTable(t)
	for _, row := range rows {
		verdict, pattern, want := row[0], row[1], row[2:]
		p, err := CompilePatterns([]string{pattern})
		switch {
		case verdict == "refused" && err == nil:
			t.Errorf("pattern %q is accepted, Java refuses it", pattern)
			continue
		case verdict == "refused":
			continue
		case err != nil:
			t.Errorf("pattern %q is refused, Java accepts it: %v", pattern, err)
			continue
		}
		var got []string
		for _, name := range names {
			if p.Match(name) {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(append([]string(nil), want...), got); diff != "" {
			translated, _ := translateJava(pattern)
			t.Errorf("pattern %q, translated %q (%s), matches (-Java +here):\n%s", pattern, translated, p.Engine(), diff)
		}
	}
}

// What Java knows and neither engine can run is refused by name.
func TestPatternsRefuseWhatNoEngineRuns(t *testing.T) {
	tests := []struct{ pattern, problem string }{
		{`[a-z&&[^aeiou]]`, "intersection &&"},
		{`[a&&b]`, "intersection &&"},
		{`[[:alpha:]]+`, "class inside a class"},
		{`[a[b]]`, "class inside a class"},
		{`[^a[b]]`, "class inside a class"},
		{`(?x)a b`, "comments mode"},
		{`(?ix:a b)`, "comments mode"},
		{`(?U)\w+`, "Unicode classes"},
		{`\X`, "not supported"},
		{`\G`, "not supported"},
		{`\N{SPACE}`, "not supported"},
		{`\p{InGreek}`, "property"},
		{`\p{blk=BasicLatin}`, "property"},
		{`\P{IsAlphabetic}`, "property"},
		{`\uD800`, "no character"},
		{`\1`, "group that is not there"},
		{`(a)\2`, "group that is not there"},
		{`{1}`, "could be repeated"},
		{`a{1}{2}`, "could be repeated"},
		{"a\xff", "UTF-8"},
	}
	for _, tt := range tests {
		_, err := CompilePatterns([]string{tt.pattern})
		if err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("pattern %q: error %v, want one about %q", tt.pattern, err, tt.problem)
		}
	}
}

func TestPatternErrorsNameThePieceAndTheWayOut(t *testing.T) {
	tests := []struct {
		name  string
		items []string
		want  []string // per broken item
	}{
		{"a star alone", []string{"*"}, []string{
			`pattern "*": nothing stands before it that could be repeated (for every name write .*)`,
		}},
		{"a star in front", []string{"ok", "*.orders"}, []string{
			`pattern "*.orders": "*": nothing stands before it that could be repeated (for any beginning write .*.orders)`,
		}},
		{"a comma in a repetition", []string{"sensor-[0-9]{1", "3}", "audit"}, []string{
			`pattern "sensor-[0-9]{1": "{1": a brace that begins no repetition like {2} or {2,5}: for the character write \{ ` +
				`(a list is split at every comma, also inside {m,n}; write sensor-[0-9][0-9]?[0-9]?)`,
		}},
		{"a comma in a repetition of an escape", []string{`v\d{2`, "3}"}, []string{
			`pattern "v\\d{2": "{2": a brace that begins no repetition like {2} or {2,5}: for the character write \{ ` +
				`(a list is split at every comma, also inside {m,n}; write v\d\d\d?)`,
		}},
		{"a comma in a class", []string{"x[a", "b]"}, []string{
			`pattern "x[a": "[a": a class [...] is opened and never closed (a list is split at every comma, also inside [...])`,
		}},
		{"a literal brace", []string{"foo.{"}, []string{
			`pattern "foo.{": "{": a brace that begins no repetition like {2} or {2,5}: for the character write \{`,
		}},
		{"several at once", []string{"(", "fine", ")"}, []string{
			`pattern "(": a group is opened and never closed`,
			`pattern ")": closes a group that is not open`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := CompilePatterns(tt.items)
			if err == nil {
				t.Fatal("the list is accepted")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var first *PatternError
			if !errors.As(err, &first) || tt.items[first.Index] != first.Item {
				t.Errorf("the error does not carry its item: %+v", first)
			}
		})
	}
}

func TestPatternsAreJoinedLikeMirrorMakers(t *testing.T) {
	tests := []struct {
		name    string
		items   []string
		yes, no []string
	}{
		{"an empty list matches nothing", nil, nil, []string{"", "a"}},
		{"everything", []string{".*"}, []string{"", "a", "a.b"}, nil},
		{"exactly the items", []string{"topic1", "topic2"}, []string{"topic1", "topic2"}, []string{"topic3", "topic11", "xtopic1"}},
		{"the whole name", []string{"orders"}, []string{"orders"}, []string{"orders.v2", "Orders", "ordersX"}},
		{"one character behind", []string{"prod."}, []string{"prodX"}, []string{"prod", "prod.a"}},
		{"an empty item is the empty name", []string{"a", "", "b"}, []string{"", "a", "b"}, []string{"ab"}},
		{"a flag holds for later items", []string{"(?i)a", "b"}, []string{"A", "B"}, nil},
		{"groups are counted over the list", []string{`(x)`, `(\w)\1`}, []string{"x"}, []string{"aa"}},
		{"look-ahead", []string{"^(?!recommendations$).*"}, []string{"orders", "recommendations2"}, []string{"recommendations"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := CompilePatterns(tt.items)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.yes {
				if !p.Match(name) {
					t.Errorf("%s does not match %q", p, name)
				}
			}
			for _, name := range tt.no {
				if p.Match(name) {
					t.Errorf("%s matches %q", p, name)
				}
			}
		})
	}
}

func TestPatternsNameTheirEngine(t *testing.T) {
	for _, tt := range []struct {
		items []string
		want  Engine
	}{
		{nil, EngineNone},
		{[]string{`orders`, `a\.b{1}`, `\p{Alpha}+`, `\h`, `\Z`}, EngineLinear},
		{[]string{`orders`, `(?!foo).*`}, EngineBacktracking},
		{[]string{`a++`}, EngineBacktracking},
		{[]string{`(\w+)\.\1`}, EngineBacktracking},
	} {
		p, err := CompilePatterns(tt.items)
		if err != nil {
			t.Fatal(err)
		}
		if p.Engine() != tt.want {
			t.Errorf("engine of %q is %s, want %s", tt.items, p.Engine(), tt.want)
		}
	}
}

func TestPatternsWithoutAnAnswerInTimeMatchNothingAndExclude(t *testing.T) {
	slow, err := CompilePatterns([]string{`((?!b)a|a?)*c\1`})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a", 60)
	if ok, err := slow.Try(name); ok || err == nil {
		t.Fatalf("the slow pattern answered %v without an error", ok)
	}
	all, err := CompilePatterns([]string{".*"})
	if err != nil {
		t.Fatal(err)
	}
	if ok, reason := (TopicFilter{Include: all, Exclude: slow}).Explain(name); ok || !strings.Contains(reason, "no answer") {
		t.Errorf("accepted %v, reason %q", ok, reason)
	}
	if (ConfigFilter{Exclude: slow}).Accepts(name) {
		t.Error("a config passes although its exclusion gave no answer")
	}
}

func TestSplitListReadsAsKafkaDoes(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  []string
	}{
		{"", nil},
		{" \t ", nil},
		{"a", []string{"a"}},
		{" a , b\t,c ", []string{"a", "b", "c"}},
		{"a,,b,", []string{"a", "", "b", ""}},
		{"a b,c", []string{"a b", "c"}},
		{DefaultTopicsExclude4, []string{`mm2.*\.internal`, `.*\.replica`, `__.*`}},
	} {
		if diff := cmp.Diff(tt.want, SplitList(tt.value)); diff != "" {
			t.Errorf("SplitList(%q) (-want +got):\n%s", tt.value, diff)
		}
	}
}

func mustPatterns(tb testing.TB, list string) Patterns {
	tb.Helper()
	p, err := CompilePatterns(SplitList(list))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestDefaultExcludes(t *testing.T) {
	tests := []struct {
		list    string
		yes, no []string
	}{
		{
			DefaultTopicsExclude39,
			[]string{"a.internal", "my-internal", "x.replica", "__consumer_offsets"},
			[]string{"internal", "ainternal", "orders", "_x"},
		},
		{
			DefaultTopicsExclude4,
			[]string{"mm2-offsets.A.internal", "mm2.internal", "x.replica", "__transaction_state"},
			[]string{"a.internal", "my-internal", "orders"},
		},
		{
			DefaultGroupsExclude,
			[]string{"console-consumer-123", "connect-sink", "__group"},
			[]string{"console-consumer", "reports", "connect"},
		},
		{
			DefaultConfigPropertiesExclude,
			[]string{
				"follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
				"message.timestamp.difference.max.ms", "message.timestamp.type",
				"unclean.leader.election.enable", "min.insync.replicas",
			},
			[]string{"retention.ms", "min-insync-replicas", "cleanup.policy"},
		},
	}
	for _, tt := range tests {
		p := mustPatterns(t, tt.list)
		for _, name := range tt.yes {
			if !p.Match(name) {
				t.Errorf("%q does not exclude %q", tt.list, name)
			}
		}
		for _, name := range tt.no {
			if p.Match(name) {
				t.Errorf("%q excludes %q", tt.list, name)
			}
		}
	}
}

func TestFiltersSayWhyNot(t *testing.T) {
	topics := TopicFilter{Include: mustPatterns(t, "topic.*, a"), Exclude: mustPatterns(t, "x, topic2")}
	for _, tt := range []struct {
		name   string
		ok     bool
		reason string
	}{
		{"topic1", true, ""},
		{"topic2", false, `excluded by "topic2" in topics.exclude`},
		{"b", false, "no pattern in topics matches the whole name"},
	} {
		if ok, reason := topics.Explain(tt.name); ok != tt.ok || reason != tt.reason || topics.Accepts(tt.name) != tt.ok {
			t.Errorf("%s: %v %q, want %v %q", tt.name, ok, reason, tt.ok, tt.reason)
		}
	}
	groups := GroupFilter{Include: mustPatterns(t, "group1"), Exclude: mustPatterns(t, DefaultGroupsExclude)}
	if !groups.Accepts("group1") || groups.Accepts("group2") {
		t.Error("the group filter does not select exactly group1")
	}
	configs := ConfigFilter{Exclude: mustPatterns(t, "exclude_param.*, prop2")}
	if configs.Accepts("exclude_param.x") || configs.Accepts("prop2") || !configs.Accepts("prop1") {
		t.Error("the config filter does not leave out exactly its list")
	}
}

// FuzzFilter compiles anything: it must not crash, a quoted name matches itself
// only, and a pattern that says the same to Java and to Go matches the same.
func FuzzFilter(f *testing.F) {
	for _, seed := range [][2]string{
		{"orders.*", "orders.v2"},
		{`(?!foo).*`, "foo"},
		{`\Qa.b\E`, "a.b"},
		{"*", ""},
		{"[a-z&&[^b]]", "b"},
		{`(\w+)\.\1`, "a.a"},
		{`[\w-z]`, "-"},
		{"foo.{", "foo.{"},
		{`(?i:A)++`, "aa"},
		{`a{1,2}\p{Alpha}`, "aab"},
		{")(", "0"},
	} {
		f.Add(seed[0], seed[1])
	}
	simple := regexp.MustCompile(`^[A-Za-z0-9_.|()*-]*$`)
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 60 || len(name) > 60 {
			t.Skip()
		}
		p, err := CompilePatterns([]string{pattern})
		if err == nil {
			p.Match(name)
		} else if !strings.Contains(err.Error(), "pattern") {
			t.Fatalf("the error names no pattern: %v", err)
		}
		if simple.MatchString(pattern) {
			// Alone first: a parenthesis too many would close the wrapping group.
			_, cause := regexp.Compile(pattern)
			var ours *regexp.Regexp
			if cause == nil {
				ours, cause = regexp.Compile(`\A(?:` + pattern + `)\z`)
			}
			if (cause == nil) != (err == nil) && !strings.Contains(pattern, "**") {
				t.Fatalf("pattern %q: %v here, %v by regexp", pattern, err, cause)
			}
			if err == nil && cause == nil && p.Match(name) != ours.MatchString(name) {
				t.Fatalf("pattern %q matches %q: %v", pattern, name, p.Match(name))
			}
		}
		if !utf8.ValidString(pattern) || strings.Contains(pattern, `\E`) || strings.HasSuffix(pattern, `\`) {
			return
		}
		quoted, err := CompilePatterns([]string{`\Q` + pattern + `\E`})
		if err != nil {
			t.Fatalf("the quoted %q is refused: %v", pattern, err)
		}
		if !quoted.Match(pattern) || quoted.Match(name) != (name == pattern) {
			t.Fatalf("the quoted %q does not match itself only (%q)", pattern, name)
		}
	})
}
