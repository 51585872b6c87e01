package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliograph/internal/kafka"
)

// HoldKey names one setting of one topic of the target.
type HoldKey struct {
	Topic, Config string
}

// Hold is a change that waits because it could delete records on the target.
type Hold struct {
	Wish     string // what the source asks for; another wish starts another hold
	Since    time.Time
	Until    time.Time // from then on the change is made
	Accepted bool      // somebody said yes
	Refused  bool      // somebody said no: it waits until the source wishes something else
}

// Holds is the memory of [Configs] between rounds, a value: what waits, and what
// the target has already been in step with. A wish that was fulfilled before and
// is not now means that somebody changed the target, not the source; putting it
// back is no typing error of the source and is not held. The zero value is empty:
// after a restart every wait begins again, which errs on the safe side.
type Holds struct {
	held    map[HoldKey]Hold
	settled map[HoldKey]string
}

// Held are the waiting changes.
func (h Holds) Held() map[HoldKey]Hold { return maps.Clone(h.held) }

// Accept lets a waiting change pass in the next round. It reports whether there is one.
func (h Holds) Accept(key HoldKey) (Holds, bool) { return h.decide(key, true) }

// Refuse keeps a waiting change from being made when its time is over. It reports whether there
// is one.
func (h Holds) Refuse(key HoldKey) (Holds, bool) { return h.decide(key, false) }

func (h Holds) decide(key HoldKey, yes bool) (Holds, bool) {
	hold, ok := h.held[key]
	if !ok {
		return h, false
	}
	next := h.clone()
	hold.Accepted, hold.Refused = yes, !yes
	next.held[key] = hold
	return next, true
}

// Created notes the settings a topic was created with: it is in step with them.
func (h Holds) Created(topic string, configs map[string]string) Holds {
	next := h.clone()
	for name, value := range configs {
		next.settle(HoldKey{topic, name}, "="+value)
	}
	return next
}

func (h Holds) clone() Holds {
	n := Holds{held: maps.Clone(h.held), settled: maps.Clone(h.settled)}
	if n.held == nil {
		n.held = map[HoldKey]Hold{}
	}
	if n.settled == nil {
		n.settled = map[HoldKey]string{}
	}
	return n
}

// The methods below change the maps they are called on: a clone of the round's.

// settle notes that the target is where the source wants it. Only settings that
// can delete records are worth remembering.
func (h Holds) settle(key HoldKey, wish string) {
	delete(h.held, key)
	if _, ok := dangers[key.Config]; ok {
		h.settled[key] = wish
	}
}

// passes reports whether a dangerous change may be made now.
func (h Holds) passes(key HoldKey, wish string, now time.Time) bool {
	if h.settled[key] == wish {
		return true
	}
	hold, ok := h.held[key]
	return ok && hold.Wish == wish && !hold.Refused && (hold.Accepted || !now.Before(hold.Until))
}

// hold keeps a change waiting and reports whether it is a new one.
func (h Holds) hold(key HoldKey, wish string, now time.Time, d time.Duration) (Hold, bool) {
	if hold, ok := h.held[key]; ok && hold.Wish == wish {
		return hold, false
	}
	hold := Hold{Wish: wish, Since: now, Until: now.Add(d)}
	h.held[key] = hold
	return hold, true
}

// release drops holds of a topic that nobody wishes for any more.
func (h Holds) release(topic string, want map[string]wantedChange) {
	maps.DeleteFunc(h.held, func(k HoldKey, hold Hold) bool {
		if k.Topic != topic {
			return false
		}
		c, ok := want[k.Config]
		return !ok || c.settled || c.wish() != hold.Wish
	})
}

func (h Holds) forgetTopics(keep map[string]bool) {
	maps.DeleteFunc(h.held, func(k HoldKey, _ Hold) bool { return !keep[k.Topic] })
	maps.DeleteFunc(h.settled, func(k HoldKey, _ string) bool { return !keep[k.Topic] })
}

// dangers are the settings whose change can delete records, with the test for it.
var dangers = map[string]func(from, to string) bool{
	"retention.ms":                 lowered,
	"retention.bytes":              lowered,
	"delete.retention.ms":          lowered,
	"cleanup.policy":               gainsDelete,
	"remote.log.delete.on.disable": turnsOn,
}

// danger says why a change could delete records, or nothing. deletes says
// whether the topic deletes by retention once all changes are made; where it
// does not, a lower retention deletes nothing.
func (in ConfigInput) danger(c wantedChange, deletes bool) string {
	test, ok := dangers[c.Name]
	if !ok {
		return ""
	}
	if strings.HasPrefix(c.Name, "retention.") && !deletes {
		return ""
	}
	to, known := c.New, true
	if c.Delete {
		to, known = in.Inherited[c.Name], in.Inherited[c.Name] != ""
	}
	switch {
	case !known:
		return fmt.Sprintf("the target's default of %s is not known and could delete records", c.Name)
	case test(c.Old, to):
		return fmt.Sprintf("%s from %s to %s can delete records on the target", c.Name, orUnset(c.Old), orUnset(to))
	}
	return ""
}

// deletesAfter reports whether the topic's cleanup policy has delete, now or
// after the changes.
func (in ConfigInput) deletesAfter(target map[string]kafka.ConfigEntry, want map[string]wantedChange) bool {
	const policy = "cleanup.policy"
	have, ok := target[policy]
	if !ok || hasDelete(have.Value) {
		return true
	}
	c, ok := want[policy]
	switch {
	case !ok:
		return false
	case c.Delete:
		to := in.Inherited[policy]
		return to == "" || hasDelete(to)
	}
	return hasDelete(c.New)
}

// lowered compares limits; -1 is none. What is no number counts as lowered.
func lowered(from, to string) bool {
	f, err1 := strconv.ParseInt(from, 10, 64)
	t, err2 := strconv.ParseInt(to, 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return true
	case t < 0:
		return false
	case f < 0:
		return true
	}
	return t < f
}

func gainsDelete(from, to string) bool { return hasDelete(to) && !hasDelete(from) }

func hasDelete(policy string) bool {
	return slices.ContainsFunc(strings.Split(policy, ","), func(p string) bool { return strings.TrimSpace(p) == "delete" })
}

func turnsOn(from, to string) bool { return to == "true" && from != "true" }
