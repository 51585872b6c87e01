package control

import (
	"context"
	"encoding/json"

	"heliograph/internal/mirror"
)

// refusedKind is the kind of the documents that keep what a person has refused: held changes of
// settings of copies. They belong to a flow, and go with it.
const refusedKind = "held.refused"

// refusal is such a document's value.
type refusal struct {
	Flow    string `json:"flow"`
	Topic   string `json:"topic"`
	Setting string `json:"setting"`
	Wish    string `json:"wish"`
}

func refusedID(id mirror.FlowID, topic, setting string) string {
	return id.String() + "/" + topic + "/" + setting
}

// Refuse remembers, over restarts and for all instances, that a held change of a copy's setting to
// that value is not to be made.
func (c *Control) Refuse(ctx context.Context, id mirror.FlowID, topic, setting, wish string) error {
	value, err := json.Marshal(refusal{id.String(), topic, setting, wish})
	if err != nil {
		return &Error{Kind: Internal, Message: "it cannot be stored", Cause: err}
	}
	return c.remember(ctx, id, PutDocument{Kind: refusedKind, ID: refusedID(id, topic, setting), Value: value, If: Any})
}

// Unrefuse forgets a refusal, if there is one.
func (c *Control) Unrefuse(ctx context.Context, id mirror.FlowID, topic, setting string) error {
	err := c.remember(ctx, id, DeleteDocument{Kind: refusedKind, ID: refusedID(id, topic, setting), If: Any})
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// remember commits in the name of the flow's owner, whoever of those that may change it decides.
func (c *Control) remember(ctx context.Context, id mirror.FlowID, change Change) error {
	h, err := c.flow(ctx, string(id.Source), string(id.Target))
	if err != nil {
		return err
	}
	a := ActorOf(ctx)
	if a.May(ScopeWrite) {
		a.Tenant, a.Scopes = h.Tenant, []Scope{ScopeWrite}
	}
	_, err = c.Commit(WithActor(ctx, a), change)
	return err
}

// Refused says whether the change to that value was refused.
func (c *Control) Refused(id mirror.FlowID, topic, setting, wish string) bool {
	d, ok := c.state.Load().documents[docKey{refusedKind, refusedID(id, topic, setting)}]
	var r refusal
	return ok && json.Unmarshal(d.Value, &r) == nil && r.Wish == wish
}

// forgetRefusals drops those of a flow that goes.
func (d *draft) forgetRefusals(id mirror.FlowID) error {
	for key, doc := range d.next.documents {
		var r refusal
		if key.kind != refusedKind || json.Unmarshal(doc.Value, &r) != nil || r.Flow != id.String() {
			continue
		}
		if err := d.deleteDocument(DeleteDocument{Kind: key.kind, ID: key.id, If: Any}); err != nil {
			return err
		}
	}
	return nil
}
