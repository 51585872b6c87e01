package syncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// ACLOptions are what an ACLSync needs besides its clusters.
type ACLOptions struct {
	Flow                       mirror.FlowID
	Selection                  mirror.TopicSelection
	SourceBudget, TargetBudget *Budget
	Log                        *slog.Logger
}

// ACLSync copies topic ACLs and never removes any.
type ACLSync struct {
	source     ACLSource
	target     ACLTarget
	o          ACLOptions
	conditions *Conditions
	said       map[string]bool
	granted    map[kafka.ACL]bool // made by us, where the target does not tell what it has
	mayGrant   bool               // the last describe was refused, which says nothing of granting
	wanted     atomic.Pointer[mirror.TopicSelection]
	mu         struct {
		sync.Mutex
		report ACLReport
	}
}

// ACLReport is how the ACLs stand. Inactive says why none are copied; empty when some may be.
type ACLReport struct {
	At       time.Time
	Inactive string
	Granted  int // in this life
	Refused  []plan.RefuseACL
}

// NewACLSync makes the job.
func NewACLSync(source ACLSource, target ACLTarget, o ACLOptions) *ACLSync {
	return &ACLSync{source: source, target: target, o: o, conditions: NewConditions(o.Log), said: map[string]bool{}, granted: map[kafka.ACL]bool{}}
}

// Report tells how the ACLs stand.
func (s *ACLSync) Report() ACLReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.report
}

// SetSelection changes the topics whose ACLs the rounds to come copy.
func (s *ACLSync) SetSelection(t mirror.TopicSelection) { s.wanted.Store(&t) }

// RunOnce does one round. A cluster without an authorizer, or one that does not
// let us read its ACLs, makes the job inactive and is no failure.
func (s *ACLSync) RunOnce(ctx context.Context, now time.Time) error {
	if t := s.wanted.Swap(nil); t != nil {
		s.o.Selection = *t
	}
	source, inactive, err := s.describe(ctx, now, s.source, s.o.Flow.Source, s.o.SourceBudget)
	if err != nil || inactive != "" {
		s.note(now, inactive)
		return err
	}
	target, inactive, err := s.describe(ctx, now, s.target, s.o.Flow.Target, s.o.TargetBudget)
	switch {
	case err != nil:
		return err
	case inactive != "" && !s.mayGrant:
		s.note(now, inactive)
		return nil
	}
	for a := range s.granted {
		target = append(target, a)
	}
	s.note(now, "")
	return s.apply(ctx, plan.ACLs(plan.ACLInput{Flow: s.o.Flow, Selection: s.o.Selection, Source: source, Target: target}))
}

// describe reads a cluster's topic ACLs, or says why they cannot be had.
func (s *ACLSync) describe(ctx context.Context, now time.Time, from ACLSource, cluster mirror.ClusterAlias, budget *Budget) (acls []kafka.ACL, inactive string, err error) {
	if err := budget.Take(ctx); err != nil {
		return nil, "", err
	}
	acls, err = from.DescribeACLs(ctx)
	attrs := []slog.Attr{slog.String(telemetry.KeyCluster, string(cluster))}
	subject := "describe " + string(cluster)
	s.mayGrant = false
	switch kafka.CodeOf(err) {
	case kafka.CodeSecurityDisabled:
		level := slog.LevelInfo
		if s.said[subject] {
			level = slog.LevelDebug
		}
		s.said[subject] = true
		s.o.Log.LogAttrs(ctx, level, "cluster has no authorizer, ACLs are not copied", attrs...)
		return nil, fmt.Sprintf("cluster %s has no authorizer, ACLs are not copied", cluster), nil
	case kafka.CodeClusterAuthorizationFailed:
		err = fmt.Errorf("ACLs of cluster %s cannot be read: %s (grant DESCRIBE on the cluster)", cluster, kafka.CauseOf(err))
		s.conditions.Report(now, subject, err, attrs...)
		s.mayGrant = true
		return nil, err.Error(), nil
	case kafka.CodeNone:
		if err == nil {
			delete(s.said, subject)
			s.conditions.Report(now, subject, nil, attrs...)
		}
	}
	return acls, "", located("describe ACLs", cluster, err)
}

func (s *ACLSync) note(now time.Time, inactive string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.report.At, s.mu.report.Inactive = now, inactive
}

func (s *ACLSync) apply(ctx context.Context, actions []plan.Action) error {
	var grants []kafka.ACL
	var refused []plan.RefuseACL
	for _, a := range actions {
		switch a := a.(type) {
		case plan.GrantACL:
			grants = append(grants, a.ACL)
		case plan.RefuseACL:
			refused = append(refused, a)
			if !s.said[a.String()] {
				s.said[a.String()] = true
				s.o.Log.LogAttrs(ctx, slog.LevelWarn, "ACL not copied", slog.String("acl", a.String()))
			}
		}
	}
	made := 0
	var failed []error
	err := everyBatch(grants, createBatch, func(batch []kafka.ACL) error {
		if err := s.o.TargetBudget.Take(ctx); err != nil {
			return err
		}
		for i, err := range s.target.CreateACLs(ctx, batch) {
			if err != nil {
				failed = append(failed, grantError{batch[i], err})
				continue
			}
			made++
			s.granted[batch[i]] = true
		}
		return nil
	})
	if made > 0 {
		s.o.Log.LogAttrs(ctx, slog.LevelInfo, "ACLs granted", slog.String(telemetry.KeyCluster, string(s.o.Flow.Target)), slog.Int(telemetry.KeyCount, made))
	}
	s.mu.Lock()
	s.mu.report.Granted += made
	s.mu.report.Refused = refused
	s.mu.Unlock()
	return errors.Join(err, s.summary(failed))
}

// grantError is a binding that the target did not take.
type grantError struct {
	acl kafka.ACL
	err error
}

// Error names the binding and why.
func (e grantError) Error() string {
	return fmt.Sprintf("%s %s of %s on topic %s: %s", e.acl.Permission, e.acl.Operation, e.acl.Principal, e.acl.ResourceName, kafka.CauseOf(e.err))
}

// Unwrap returns why.
func (e grantError) Unwrap() error { return e.err }

// summary is one error for all bindings that could not be made.
func (s *ACLSync) summary(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	hint := ""
	if c := kafka.CodeOf(failed[0]); c == kafka.CodeClusterAuthorizationFailed {
		hint = " (grant ALTER on the cluster, or set sync.topic.acls.enabled=false)"
	}
	return fmt.Errorf("%s could not be granted on cluster %s, the first is %w%s", counted(len(failed), "ACL"), s.o.Flow.Target, failed[0], hint)
}
