package native

import (
	"context"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
	"heliograph/internal/daemon"
)

const rateProperty = "heliograph.rate.bytes.per.second"

// ClusterBody is what a cluster is made of.
type ClusterBody struct {
	Properties map[string]string `json:"properties" doc:"Kafka's client settings as they stand behind the alias in an mm2.properties. A hidden value stays what it is."`
	Labels     map[string]string `json:"labels,omitempty" doc:"Labels for the server's policy and for people."`
}

// ClusterView is a cluster; its secrets are hidden.
type ClusterView struct {
	Alias      string            `json:"alias"`
	Properties map[string]string `json:"properties"`
	Labels     map[string]string `json:"labels"`
	Tenant     string            `json:"tenant,omitempty"`
	File       string            `json:"file,omitempty" doc:"The file that it stands in; then it is read-only here."`
	Revision   int64             `json:"revision"`
}

func clusterView(c *control.Cluster) ClusterView {
	return ClusterView{
		Alias: c.Alias, Properties: control.Shown(c.Properties), Labels: orEmpty(c.Labels), Tenant: c.Tenant, File: c.File, Revision: int64(c.Revision),
	}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// AliasInput names a cluster in a path. It is exported for huma alone.
type AliasInput struct {
	Alias string `path:"alias" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9._-]+$" doc:"The cluster's alias."`
}

type clusterOutput struct {
	ETag string `header:"ETag" doc:"The revision, for If-Match."`
	Body ClusterView
}

type surveyOutput struct{ Body daemon.ClusterSurvey }

func (a *API) registerClusters() {
	type listOutput struct{ Body List[ClusterView] }
	huma.Register(a.huma, op("list-clusters", http.MethodGet, "/clusters", "Clusters by alias", "clusters"),
		func(ctx context.Context, in *struct{ PageInput }) (*listOutput, error) {
			return &listOutput{page(a.o.Control.Clusters(ctx), in.PageInput, func(c *control.Cluster) string { return c.Alias }, clusterView)}, nil
		})
	huma.Register(a.huma, op("get-cluster", http.MethodGet, "/clusters/{alias}", "One cluster", "clusters", http.StatusNotFound),
		func(ctx context.Context, in *AliasInput) (*clusterOutput, error) {
			return a.clusterAnswer(a.o.Control.Cluster(ctx, in.Alias))
		})
	huma.Register(a.huma, write("put-cluster", http.MethodPut, "/clusters/{alias}", "Register or change a cluster", "clusters"),
		func(ctx context.Context, in *struct {
			AliasInput
			MatchInput
			Body ClusterBody
		},
		) (*clusterOutput, error) {
			m, exists, err := in.match()
			if err != nil {
				return nil, err
			}
			old, err := a.o.Control.Cluster(ctx, in.Alias)
			if err != nil && exists {
				return nil, a.problemOf(err)
			}
			return a.clusterAnswer(a.o.Control.PutCluster(ctx, control.Cluster{
				Alias: in.Alias, Properties: control.Unhidden(in.Body.Properties, old.Properties), Labels: in.Body.Labels,
			}, m))
		})
	huma.Register(a.huma, noContent(write("delete-cluster", http.MethodDelete, "/clusters/{alias}", "Forget a cluster that no flow uses", "clusters")),
		func(ctx context.Context, in *struct {
			AliasInput
			MatchInput
		},
		) (*struct{}, error) {
			m, _, err := in.match()
			if err != nil {
				return nil, err
			}
			return nil, a.answer(a.o.Control.DeleteCluster(ctx, in.Alias, m))
		})
	huma.Register(a.huma, write("put-cluster-rate", http.MethodPut, "/clusters/{alias}/rate", "Cap all flows of a cluster together, without a restart", "clusters"),
		func(ctx context.Context, in *struct {
			AliasInput
			Body RateBody
		},
		) (*clusterOutput, error) {
			c, err := a.o.Control.Cluster(ctx, in.Alias)
			if err != nil {
				return nil, a.problemOf(err)
			}
			c.Properties = in.Body.in(c.Properties)
			return a.clusterAnswer(a.o.Control.PutCluster(ctx, c, control.At(c.Revision)))
		})
	a.registerClusterTests()
}

func (a *API) registerClusterTests() {
	huma.Register(a.huma, write("test-connection", http.MethodPost, "/connection-tests", "Ask a cluster who it is by settings that need not be registered", "clusters"),
		func(ctx context.Context, in *struct {
			Body ConnectionTest
		},
		) (*surveyOutput, error) {
			old, _ := a.o.Control.Cluster(ctx, in.Body.Alias) // one that is not there has no stored secrets
			if !control.ActorOf(ctx).Sees(old.Tenant) {
				old = control.Cluster{} // others' secrets are not sent to where this request says
			}
			return a.test(ctx, control.Cluster{Alias: in.Body.Alias, Properties: control.Unhidden(in.Body.Properties, old.Properties)})
		})
	huma.Register(a.huma, write("test-cluster", http.MethodPost, "/clusters/{alias}/test", "Ask a cluster who it is and what it can do", "clusters"),
		func(ctx context.Context, in *AliasInput) (*surveyOutput, error) {
			client, err := a.o.Control.Client(ctx, in.Alias)
			if err != nil {
				return nil, a.problemOf(err)
			}
			defer client.Close()
			done, err := a.ask(ctx)
			if err != nil {
				return nil, err
			}
			defer done()
			return &surveyOutput{daemon.AskClient(ctx, in.Alias, client)}, nil
		})
}

// ConnectionTest is a cluster that need not be registered.
type ConnectionTest struct {
	Alias      string            `json:"alias" minLength:"1" maxLength:"128" doc:"How the cluster is to be called."`
	Properties map[string]string `json:"properties" doc:"Kafka's client settings."`
}

func (a *API) test(ctx context.Context, c control.Cluster) (*surveyOutput, error) {
	done, err := a.ask(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := a.o.Control.TestConnection(ctx, c)
	if err != nil {
		return nil, a.problemOf(err)
	}
	return &surveyOutput{s}, nil
}

// RateBody is a cap.
type RateBody struct {
	BytesPerSecond int64 `json:"bytes_per_second" minimum:"0" maximum:"1000000000000" doc:"Zero lifts the cap."`
}

// in sets the cap among properties.
func (r RateBody) in(properties map[string]string) map[string]string {
	out := maps.Clone(properties)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, rateProperty)
	if r.BytesPerSecond > 0 {
		out[rateProperty] = strconv.FormatInt(r.BytesPerSecond, 10)
	}
	return out
}

func (a *API) clusterAnswer(c control.Cluster, err error) (*clusterOutput, error) {
	if err != nil {
		return nil, a.problemOf(err)
	}
	return &clusterOutput{etag(c.Revision), clusterView(&c)}, nil
}

// answer is an error as a problem, and nothing as nothing.
func (a *API) answer(err error) error {
	if err == nil {
		return nil
	}
	return a.problemOf(err)
}

func noContent(o huma.Operation) huma.Operation {
	o.DefaultStatus = http.StatusNoContent
	return o
}
