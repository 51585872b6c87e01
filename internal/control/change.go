package control

import (
	"encoding/json"
)

// Change is one step of a commit: [PutCluster], [DeleteCluster], [PutFlow],
// [DeleteFlow], [PutDocument] or [DeleteDocument].
type Change interface{ change() }

// PutCluster makes or replaces a cluster.
type PutCluster struct {
	Cluster Cluster // its Tenant, File and Revision are not read
	If      Match
}

// DeleteCluster forgets a cluster that no flow uses.
type DeleteCluster struct {
	Alias string
	If    Match
}

// PutFlow makes or replaces a flow.
type PutFlow struct {
	Flow Flow // its Tenant, File and Revision are not read
	If   Match
}

// DeleteFlow stops a flow and forgets it. Nothing is deleted on its clusters.
type DeleteFlow struct {
	Source, Target string
	If             Match
}

// PutDocument keeps a JSON value of an adapter.
type PutDocument struct {
	Kind, ID string
	Value    json.RawMessage
	If       Match
}

// DeleteDocument forgets one.
type DeleteDocument struct {
	Kind, ID string
	If       Match
}

func (PutCluster) change()     {}
func (DeleteCluster) change()  {}
func (PutFlow) change()        {}
func (DeleteFlow) change()     {}
func (PutDocument) change()    {}
func (DeleteDocument) change() {}
