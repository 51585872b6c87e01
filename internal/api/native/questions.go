package native

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/kafka"
)

// question is an operation that asks the clusters of a flow.
func question(id, path, summary string) huma.Operation {
	return op(id, http.MethodGet, "/flows/{source}/{target}"+path, summary, "questions", http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable)
}

// asked is a flow's deployment, with a place among those that ask clusters.
func (a *API) asked(ctx context.Context, in FlowInput) (dep *config.Deployment, done func(), err error) {
	dep, err = a.o.Control.Resolved(ctx, in.Source, in.Target)
	if err != nil {
		return nil, nil, a.problemOf(err)
	}
	done, err = a.ask(ctx)
	return dep, done, err
}

// unanswered is the problem of a cluster that did not answer.
func unanswered(err error) error { return refuse(http.StatusBadGateway, err.Error()) }

func (a *API) registerQuestions() {
	type groupsOutput struct{ Body daemon.FlowGroups }
	huma.Register(a.huma, question("get-groups", "/groups", "How the consumer groups of a flow stand, and what a fail-over would cost them"),
		func(ctx context.Context, in *struct {
			FlowInput
			Group string `query:"group" maxLength:"300" doc:"A pattern of group names; all where it is absent."`
		},
		) (*groupsOutput, error) {
			dep, done, err := a.asked(ctx, in.FlowInput)
			if err != nil {
				return nil, err
			}
			defer done()
			o := daemon.GroupsOptions{Flow: in.id().String()}
			if in.Group != "" {
				o.Groups = []string{in.Group}
			}
			got, err := daemon.Groups(ctx, dep, o, a.o.Log)
			if err != nil {
				return nil, unanswered(err)
			}
			return &groupsOutput{got[0]}, nil
		})
	type lossesOutput struct{ Body List[daemon.Loss] }
	huma.Register(a.huma, question("get-losses", "/losses", "What was not copied, or may not have been, from the ledger on the target"),
		func(ctx context.Context, in *struct {
			FlowInput
			Topic string `query:"topic" maxLength:"300" doc:"A pattern of source topics; all where it is absent."`
		},
		) (*lossesOutput, error) {
			dep, done, err := a.asked(ctx, in.FlowInput)
			if err != nil {
				return nil, err
			}
			defer done()
			o := daemon.LossesOptions{Flow: in.id().String()}
			if in.Topic != "" {
				o.Topics = []string{in.Topic}
			}
			got, err := daemon.ReadLosses(ctx, dep, o, a.o.Log)
			if err != nil {
				return nil, unanswered(err)
			}
			out := &lossesOutput{}
			out.Body.Items = got
			return out, nil
		})
	a.registerTranslate()
	a.registerPreviews()
}

func (a *API) registerTranslate() {
	type translateOutput struct{ Body List[daemon.Translated] }
	huma.Register(a.huma, question("translate", "/translate", "Where an offset, or all that a group has committed, lies on the other cluster"),
		func(ctx context.Context, in *struct {
			FlowInput
			Group     string `query:"group" maxLength:"300" doc:"Translate what this group has committed, instead of one offset."`
			Topic     string `query:"topic" maxLength:"249" doc:"The topic of one offset, by its name on the side that it lies on."`
			Partition int32  `query:"partition" minimum:"0" doc:"With topic."`
			Offset    int64  `query:"offset" minimum:"0" doc:"With topic."`
			Reverse   bool   `query:"reverse" doc:"From the target to the source."`
		},
		) (*translateOutput, error) {
			if (in.Group == "") == (in.Topic == "") {
				return nil, newProblem(http.StatusUnprocessableEntity, "give a topic with partition and offset, or a group",
					&huma.ErrorDetail{Location: "query.topic", Message: "one of topic and group is needed"})
			}
			dep, done, err := a.asked(ctx, in.FlowInput)
			if err != nil {
				return nil, err
			}
			defer done()
			got, err := daemon.Translate(ctx, dep, daemon.TranslateOptions{
				Flow: in.id().String(), Group: in.Group, At: kafka.TopicPartition{Topic: in.Topic, Partition: in.Partition}, Offset: in.Offset, Reverse: in.Reverse,
			}, a.o.Log)
			if err != nil {
				return nil, unanswered(err)
			}
			out := &translateOutput{}
			out.Body.Items = got
			return out, nil
		})
}

func (a *API) registerPreviews() {
	type previewOutput struct{ Body daemon.FlowPreview }
	huma.Register(a.huma, question("preview-flow", "/preview", "What a flow would create and change on its clusters now, and where each partition would go on"),
		func(ctx context.Context, in *FlowInput) (*previewOutput, error) {
			dep, done, err := a.asked(ctx, *in)
			if err != nil {
				return nil, err
			}
			defer done()
			got, err := daemon.Foresee(ctx, dep, nil, a.o.Log)
			if err != nil {
				return nil, unanswered(err)
			}
			for _, f := range got.Flows {
				if f.Flow == in.id().String() {
					return &previewOutput{f}, nil
				}
			}
			return nil, refuse(http.StatusNotFound, "the flow is not there any more")
		})
	type surveyOut struct{ Body daemon.Survey }
	huma.Register(a.huma, question("survey-flow", "/survey", "Who a flow's clusters are, what they can do, and what they refuse us"),
		func(ctx context.Context, in *FlowInput) (*surveyOut, error) {
			dep, done, err := a.asked(ctx, *in)
			if err != nil {
				return nil, err
			}
			defer done()
			got, err := daemon.Look(ctx, dep, nil, a.o.Log)
			if err != nil {
				return nil, unanswered(err)
			}
			return &surveyOut{*got}, nil
		})
}
