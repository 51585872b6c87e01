package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMain makes the test binary stand for the program under both its names.
func TestMain(m *testing.M) {
	program := func() {
		os.Exit(Main(context.Background(), os.Args, Stdio{
			Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: "1.2.3",
		}))
	}
	testscript.Main(m, map[string]func(){
		"heliograph":           program,
		"connect-mirror-maker": program,
	})
}

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// TestScripts runs testdata/script: a command line, its outputs and exit codes.
// The scripts have these commands beside the usual ones:
//
//	code N PROGRAM ARG ...   run, and fail unless the exit code is N
//	cluster NAME [BROKERS]   start an embedded cluster; $NAME is its first broker, $NAMEx its second
//	expand FILE              replace $NAME in a file by the variable's value
//	topic NAME TOPIC PARTITIONS [RECORDS]
//	contents NAME FILE       write every topic with its end offsets to a file
//	await NAME TOPIC RECORDS wait until a topic holds so many records
//	awaitready ADDRESS       wait until /healthz/ready answers 200
//	awaittext FILE TEXT      wait until a background command's file holds a text
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("TMPDIR", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":       scriptCode,
			"cluster":    scriptCluster,
			"topic":      scriptTopic,
			"contents":   scriptContents,
			"await":      scriptAwait,
			"awaitready": scriptAwaitReady,
			"awaittext":  scriptAwaitText,
			"expand":     scriptExpand,
		},
	})
}

func scriptCode(ts *testscript.TestScript, _ bool, args []string) {
	want := args[0]
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

func scriptCluster(ts *testscript.TestScript, _ bool, args []string) {
	brokers := 1
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		brokers = n
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.ClusterID("id-of-"+args[0]))
	ts.Check(err)
	ts.Defer(c.Close)
	for i, address := range c.ListenAddrs() {
		ts.Setenv(args[0]+strings.Repeat("x", i), address)
	}
}

func scriptClient(ts *testscript.TestScript, name string) (*kgo.Client, context.Context) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv(name)), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ts.Defer(func() { cancel(); cl.Close() })
	return cl, ctx
}

func scriptTopic(ts *testscript.TestScript, _ bool, args []string) {
	cl, ctx := scriptClient(ts, args[0])
	partitions, err := strconv.Atoi(args[2])
	ts.Check(err)
	_, err = kadm.NewClient(cl).CreateTopic(ctx, int32(partitions), 1, nil, args[1])
	ts.Check(err)
	if len(args) < 4 {
		return
	}
	n, err := strconv.Atoi(args[3])
	ts.Check(err)
	for i := range n {
		ts.Check(cl.ProduceSync(ctx, &kgo.Record{Topic: args[1], Value: []byte("record " + strconv.Itoa(i))}).FirstErr())
	}
}

func scriptContents(ts *testscript.TestScript, _ bool, args []string) {
	cl, ctx := scriptClient(ts, args[0])
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(ctx)
	ts.Check(err)
	var lines []string
	ends.Each(func(o kadm.ListedOffset) {
		lines = append(lines, fmt.Sprintf("%s %d %d", o.Topic, o.Partition, o.Offset))
	})
	groups, err := adm.ListGroups(ctx)
	ts.Check(err)
	for _, g := range groups.Groups() {
		lines = append(lines, "group "+g)
	}
	slices.Sort(lines)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// eventually asks again until the answer is yes.
func eventually(ts *testscript.TestScript, what string, yes func() bool) {
	deadline := time.Now().Add(patience)
	for !yes() {
		if time.Now().After(deadline) {
			ts.Fatalf("waited %s in vain for %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func scriptAwait(ts *testscript.TestScript, _ bool, args []string) {
	cl, ctx := scriptClient(ts, args[0])
	want, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	adm := kadm.NewClient(cl)
	eventually(ts, args[2]+" records in "+args[1], func() bool {
		ends, err := adm.ListEndOffsets(ctx, args[1])
		if err != nil {
			return false
		}
		var n int64
		ends.Each(func(o kadm.ListedOffset) { n += max(o.Offset, 0) })
		return n >= want
	})
}

func scriptAwaitReady(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "readiness", func() bool {
		res, err := http.Get("http://" + args[0] + "/healthz/ready")
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func scriptAwaitText(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "the text "+args[1], func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(data), args[1])
	})
}

func scriptExpand(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
