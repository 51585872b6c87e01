package native

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/verify"
)

// Bounds of verifications.
const (
	maxRunning = 2   // at the same time
	maxJobs    = 100 // kept, those that run and those that have ended
)

// VerificationView is one comparison of copies with their sources.
type VerificationView struct {
	ID      string           `json:"id"`
	Flow    string           `json:"flow"`
	State   string           `json:"state" doc:"running, done, failed or cancelled."`
	Error   string           `json:"error,omitempty"`
	Started time.Time        `json:"started"`
	Ended   *time.Time       `json:"ended,omitempty"`
	Total   *verify.Estimate `json:"estimate,omitempty" doc:"What is to be read."`
	Done    *verify.Progress `json:"progress,omitempty" doc:"How far it is."`
	Report  *verify.Report   `json:"report,omitempty"`
}

type job struct {
	view   VerificationView
	tenant string
	cancel context.CancelFunc
}

// jobs are the verifications of this process. They end with it: nothing is written anywhere.
type jobs struct {
	mu  sync.Mutex
	all []*job // oldest first
	wg  sync.WaitGroup
}

func (j *jobs) close() {
	j.mu.Lock()
	for _, one := range j.all {
		one.cancel()
	}
	j.mu.Unlock()
	j.wg.Wait()
}

// begin adds a job, unless too many run.
func (j *jobs) begin(one *job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, o := range j.all {
		if o.view.State == jobRunning {
			running++
		}
	}
	if running >= maxRunning {
		return refuse(http.StatusTooManyRequests, "enough verifications run; wait for one to end, or cancel it")
	}
	if len(j.all) >= maxJobs {
		if i := slices.IndexFunc(j.all, func(o *job) bool { return o.view.State != jobRunning }); i >= 0 {
			j.all = slices.Delete(j.all, i, i+1)
		}
	}
	j.all = append(j.all, one)
	return nil
}

// change changes a job's view.
func (j *jobs) change(one *job, f func(*VerificationView)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&one.view)
}

// visible are the jobs that the actor may see.
func (j *jobs) visible(a control.Actor) []VerificationView {
	j.mu.Lock()
	defer j.mu.Unlock()
	views := []VerificationView{}
	for _, o := range j.all {
		if a.Sees(o.tenant) {
			views = append(views, o.view)
		}
	}
	return views
}

// find is one of them, or nil.
func (j *jobs) find(a control.Actor, id string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.all {
		if o.view.ID == id && a.Sees(o.tenant) {
			return o
		}
	}
	return nil
}

func (j *jobs) view(one *job) VerificationView {
	j.mu.Lock()
	defer j.mu.Unlock()
	return one.view
}

// The states of a job.
const (
	jobRunning   = "running"
	jobDone      = "done"
	jobFailed    = "failed"
	jobCancelled = "cancelled"
)

// VerificationBody says what is compared.
type VerificationBody struct {
	Source         string   `json:"source" minLength:"1" maxLength:"128" doc:"The flow's source."`
	Target         string   `json:"target" minLength:"1" maxLength:"128" doc:"The flow's target."`
	Topics         []string `json:"topics,omitempty" maxItems:"1000" doc:"Patterns of source topics; all that are copied where it is absent."`
	WaitSeconds    int64    `json:"wait_seconds,omitempty" minimum:"0" maximum:"86400" doc:"How long a target may make no progress before what it lacks counts as missing."`
	BytesPerSecond int64    `json:"bytes_per_second,omitempty" minimum:"0" doc:"A cap of reading; none where it is zero."`
}

type verificationOutput struct {
	Location string `header:"Location" doc:"Where the verification is found."`
	Body     VerificationView
}

func (a *API) registerVerifications() {
	start := write("start-verification", http.MethodPost, "/verifications", "Compare the copies of a flow with their sources; nothing is written", "verifications")
	start.DefaultStatus = http.StatusAccepted
	huma.Register(a.huma, start, func(ctx context.Context, in *struct{ Body VerificationBody }) (*verificationOutput, error) {
		return a.startVerification(ctx, in.Body)
	})
	type listOutput struct{ Body List[VerificationView] }
	huma.Register(a.huma, op("list-verifications", http.MethodGet, "/verifications", "Verifications of this instance since its start", "verifications"),
		func(ctx context.Context, _ *struct{}) (*listOutput, error) {
			out := &listOutput{}
			out.Body.Items = a.jobs.visible(control.ActorOf(ctx))
			for i := range out.Body.Items {
				out.Body.Items[i].Report = nil // it may be long, and is read by its id
			}
			return out, nil
		})
	type idInput struct {
		ID string `path:"id" minLength:"1" maxLength:"64"`
	}
	huma.Register(a.huma, op("get-verification", http.MethodGet, "/verifications/{id}", "One verification with its report", "verifications", http.StatusNotFound),
		func(ctx context.Context, in *idInput) (*verificationOutput, error) {
			one := a.jobs.find(control.ActorOf(ctx), in.ID)
			if one == nil {
				return nil, refuse(http.StatusNotFound, "there is no such verification; they end with the process")
			}
			return &verificationOutput{Location: verificationPath + in.ID, Body: a.jobs.view(one)}, nil
		})
	huma.Register(a.huma, noContent(write("cancel-verification", http.MethodDelete, "/verifications/{id}", "Stop a verification", "verifications")),
		func(ctx context.Context, in *idInput) (*struct{}, error) {
			one := a.jobs.find(control.ActorOf(ctx), in.ID)
			if one == nil {
				return nil, refuse(http.StatusNotFound, "there is no such verification")
			}
			if err := mayWrite(ctx); err != nil {
				return nil, err
			}
			one.cancel()
			return nil, nil //nolint:nilnil // huma's form of an empty answer
		})
}

const verificationPath = "/api/v1/verifications/"

func (a *API) startVerification(ctx context.Context, b VerificationBody) (*verificationOutput, error) {
	if err := mayWrite(ctx); err != nil {
		return nil, err
	}
	if _, err := mirror.CompilePatterns(b.Topics); err != nil {
		return nil, newProblem(http.StatusUnprocessableEntity, "a pattern cannot be read", &huma.ErrorDetail{Location: "body.topics", Message: err.Error()})
	}
	f, err := a.o.Control.Flow(ctx, b.Source, b.Target)
	if err != nil {
		return nil, a.problemOf(err)
	}
	dep, err := a.o.Control.Resolved(ctx, b.Source, b.Target)
	if err != nil {
		return nil, a.problemOf(err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &job{
		view:   VerificationView{ID: rand.Text(), Flow: f.ID().String(), State: jobRunning, Started: time.Now().UTC()},
		tenant: f.Tenant, cancel: cancel,
	}
	if err := a.jobs.begin(one); err != nil {
		cancel()
		return nil, err
	}
	o := daemon.VerifyOptions{
		Flow: f.ID().String(), Topics: b.Topics, Wait: time.Duration(b.WaitSeconds) * time.Second, BytesPerSecond: b.BytesPerSecond,
		Begin: func(_ mirror.FlowID, e verify.Estimate) {
			a.jobs.change(one, func(v *VerificationView) { v.Total = &e })
		},
		Watch: func(_ mirror.FlowID, p verify.Progress) {
			a.jobs.change(one, func(v *VerificationView) { v.Done = &p })
		},
	}
	a.jobs.wg.Go(func() {
		defer cancel()
		reports, err := daemon.Verify(life, dep, o, a.o.Log)
		a.jobs.change(one, func(v *VerificationView) {
			v.Ended = at(time.Now())
			switch {
			case life.Err() != nil:
				v.State = jobCancelled
			case err != nil:
				v.State, v.Error = jobFailed, err.Error()
			default:
				v.State, v.Report = jobDone, reports[0]
			}
		})
	})
	return &verificationOutput{Location: verificationPath + one.view.ID, Body: a.jobs.view(one)}, nil
}
