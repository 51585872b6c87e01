package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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
//	topic NAME TOPIC PARTITIONS [RECORDS]   create, if it is not there, and write
//	down NAME                end the cluster
//	contents NAME FILE       write every topic with its end offsets to a file
//	produce NAME TOPIC PARTITION VALUE
//	count NAME TOPIC RECORDS fail unless a topic holds exactly so many records
//	await NAME TOPIC RECORDS wait until a topic holds so many
//	start NAME PROGRAM ...   run beside the script, with output in NAME.out and NAME.err
//	signal NAME SIGNAL       send a signal
//	halt NAME SIGNAL N       send the signal, and fail unless the exit code is N
//	awaitcode URL CODE       wait until an address answers with a status
//	awaitanswer URL REGEXP   wait until an answer's body matches
//	awaittext FILE TEXT      wait until a file holds a text
//	get URL FILE             write the status and body of an answer to a file
//	freeport VAR, takenport VAR
//	token VAR FILE           read an admin token, for the next two
//	call METHOD URL BODY CODE   ask with $TOKEN; BODY is a file or -
//	answer REGEXP            fail unless the last answer matches
//	awaitcall URL REGEXP     ask with $TOKEN until the answer matches
//	commit NAME GROUP TOPIC PARTITION OFFSET   commit for a group without members
//	trim NAME TOPIC PARTITION OFFSET           delete the records before an offset
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("TMPDIR", env.WorkDir)
			env.Values[stateKey{}] = &scriptState{processes: map[string]*process{}, clusters: map[string]func(){}}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"answer":      scriptAnswer,
			"await":       scriptAwait,
			"awaitcall":   scriptAwaitCall,
			"call":        scriptCall,
			"token":       scriptToken,
			"awaitanswer": scriptAwaitAnswer,
			"awaitcode":   scriptAwaitCode,
			"awaittext":   scriptAwaitText,
			"cluster":     scriptCluster,
			"commit":      scriptCommit,
			"code":        scriptCode,
			"contents":    scriptContents,
			"count":       scriptCount,
			"down":        scriptDown,
			"signal":      scriptSignal,
			"expand":      scriptExpand,
			"freeport":    scriptFreePort,
			"get":         scriptGet,
			"produce":     scriptProduce,
			"start":       scriptStart,
			"halt":        scriptHalt,
			"takenport":   scriptTakenPort,
			"topic":       scriptTopic,
			"trim":        scriptTrim,
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
	end := sync.OnceFunc(c.Close)
	ts.Defer(end)
	state(ts).clusters[args[0]] = end
	for i, address := range c.ListenAddrs() {
		ts.Setenv(args[0]+strings.Repeat("x", i), address)
	}
}

func scriptDown(ts *testscript.TestScript, _ bool, args []string) { state(ts).clusters[args[0]]() }

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
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		ts.Check(err)
	}
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

// records reads a topic to its end as a consumer does that trusts transactions.
func records(ts *testscript.TestScript, cluster, topic string) int {
	cl, ctx := scriptClient(ts, cluster)
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil || ends.Error() != nil {
		return 0
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv(cluster)), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords())
	ts.Check(err)
	defer reader.Close()
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	n := 0
	for len(left) > 0 && ctx.Err() == nil {
		reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n++
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return n
}

func scriptAwait(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	eventually(ts, args[2]+" records in "+args[1], func() bool { return records(ts, args[0], args[1]) >= want })
}

func scriptCount(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(records(ts, args[0], args[1])); got != args[2] {
		ts.Fatalf("%s holds %s records, want %s", args[1], got, args[2])
	}
}

func answer(url string) (code int, text string) {
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

func scriptAwaitCode(ts *testscript.TestScript, _ bool, args []string) {
	var text string
	defer func() { ts.Logf("%s", text) }()
	eventually(ts, args[0]+" to answer "+args[1], func() bool {
		var code int
		code, text = answer(args[0])
		return strconv.Itoa(code) == args[1]
	})
}

func scriptAwaitAnswer(ts *testscript.TestScript, _ bool, args []string) {
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	eventually(ts, args[0]+" to match "+args[1], func() bool {
		_, text := answer(args[0])
		return re.MatchString(text)
	})
}

func scriptGet(ts *testscript.TestScript, _ bool, args []string) {
	code, text := answer(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), fmt.Appendf(nil, "%d\n%s", code, text), 0o600))
}

// scriptListen binds a port of this machine and remembers its number.
func scriptListen(ts *testscript.TestScript, variable string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(variable, port)
	return l
}

func scriptFreePort(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(scriptListen(ts, args[0]).Close())
}

func scriptTakenPort(ts *testscript.TestScript, _ bool, args []string) {
	l := scriptListen(ts, args[0])
	ts.Defer(func() { _ = l.Close() })
}

// process is a program that runs beside its script.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func scriptStart(ts *testscript.TestScript, _ bool, args []string) {
	name, program := args[0], ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if file := filepath.Join(dir, args[1]); program == "" {
			if _, err := os.Stat(file); err == nil {
				program = file
			}
		}
	}
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir, "PATH="+ts.Getenv("PATH"))
	for _, out := range []struct {
		to     *io.Writer
		suffix string
	}{{&cmd.Stdout, ".out"}, {&cmd.Stderr, ".err"}} {
		f, err := os.Create(ts.MkAbs(name + out.suffix))
		ts.Check(err)
		ts.Defer(func() { _ = f.Close() })
		*out.to = f
	}
	ts.Check(cmd.Start())
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the process's state tells the code
	}()
	ts.Defer(func() { _ = cmd.Process.Kill() })
	state(ts).processes[name] = p
}

// scriptState is what one script has started, by name.
type scriptState struct {
	answer    string // of the last call
	processes map[string]*process
	clusters  map[string]func() // ends the cluster
}

func state(ts *testscript.TestScript) *scriptState { return ts.Value(stateKey{}).(*scriptState) }

type stateKey struct{}

// signals by their names in scripts.
var signals = map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}

func scriptSignal(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(state(ts).processes[args[0]].cmd.Process.Signal(signals[args[1]]))
}

func scriptHalt(ts *testscript.TestScript, _ bool, args []string) {
	scriptSignal(ts, false, args[:2])
	state(ts).processes[args[0]].expect(ts, args[0], args[2])
}

// expect waits for the program's end and fails unless its exit code is want.
func (p *process) expect(ts *testscript.TestScript, name, want string) {
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("%s did not end", name)
	}
	got := p.cmd.ProcessState.String()
	if p.cmd.ProcessState.Exited() {
		got = strconv.Itoa(p.cmd.ProcessState.ExitCode())
	}
	if got != want {
		text, _ := os.ReadFile(ts.MkAbs(name + ".err"))
		ts.Fatalf("%s ended with %s, want %s:\n%s", name, got, want, text)
	}
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
