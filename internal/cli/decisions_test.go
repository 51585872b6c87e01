package cli

import (
	"strings"
	"testing"

	"heliograph/internal/config"
)

func TestDecisionsOfTheCommandLine(t *testing.T) {
	load := func(flows string) *config.Deployment {
		return config.Load(config.Source{Name: "f", Bytes: []byte("clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n" + flows)})
	}
	one, two := load("A->B.enabled = true"), load("A->B.enabled = true\nA->C.enabled = true")
	none := load("A->B.emit.heartbeats.enabled = true")
	for _, tt := range []struct {
		dep            *config.Deployment
		answer, accept string
		want           string // flow and what is decided, or the error
	}{
		{dep: one, answer: "orders:3=scan", want: "A->B orders-3 scan"},
		{dep: two, answer: "A->C:orders:0=keep", want: "A->C orders-0 keep"},
		{dep: one, accept: "A.orders:retention.ms", want: "A->B A.orders retention.ms"},
		{dep: two, accept: "A->B:A.orders:cleanup.policy", want: "A->B A.orders cleanup.policy"},
		{dep: two, answer: "orders:3=scan", want: "say which flow, as in A->B:orders:3=scan"},
		{dep: one, answer: "A->C:orders:3=scan", want: "no such flow"},
		{dep: none, answer: "orders:3=scan", want: "no flow of the file copies topics"},
		{dep: one, answer: "orders=scan", want: "want TOPIC:PARTITION=CHOICE"},
		{dep: one, answer: "orders:-1=scan", want: "want TOPIC:PARTITION=CHOICE"},
		{dep: one, answer: "orders:1=park", want: `"park" is no choice`},
		{dep: one, answer: "orders:1", want: `"" is no choice`},
		{dep: one, accept: "A.orders", want: "want COPY:SETTING"},
	} {
		var answers, accepts []string
		if tt.answer != "" {
			answers = []string{tt.answer}
		} else {
			accepts = []string{tt.accept}
		}
		all, err := decisions(tt.dep, answers, accepts)
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case all[0].choice != "":
			got = all[0].flow.String() + " " + all[0].partition.String() + " " + string(all[0].choice)
		default:
			got = all[0].flow.String() + " " + all[0].topic + " " + all[0].setting
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s%s: %s, want %s", tt.answer, tt.accept, got, tt.want)
		}
	}
}
