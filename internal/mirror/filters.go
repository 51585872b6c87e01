package mirror

import (
	"fmt"
	"strings"
)

// The defaults of MirrorMaker's filters, as they are written in its files: lists
// with commas, see [SplitList].
const (
	DefaultTopics = ".*"
	DefaultGroups = ".*"
	// DefaultTopicsExclude39 holds from 2.4 to 3.9.
	DefaultTopicsExclude39 = `.*[\-\.]internal, .*\.replica, __.*`
	// DefaultTopicsExclude4 holds from 4.0 on (KIP-1074).
	DefaultTopicsExclude4          = `mm2.*\.internal, .*\.replica, __.*`
	DefaultGroupsExclude           = `console-consumer-.*, connect-.*, __.*`
	DefaultConfigPropertiesExclude = `follower\.replication\.throttled\.replicas, ` +
		`leader\.replication\.throttled\.replicas, message\.timestamp\.difference\.max\.ms, ` +
		`message\.timestamp\.type, unclean\.leader\.election\.enable, min\.insync\.replicas`
)

// SplitList splits a value as Kafka reads its LIST type: at every comma, blanks
// around items removed, empty items kept; an empty value is an empty list.
func SplitList(value string) []string {
	value = strings.TrimFunc(value, func(r rune) bool { return r <= ' ' })
	if value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i, item := range items {
		if i > 0 {
			item = strings.TrimLeft(item, javaBlanks)
		}
		if i < len(items)-1 {
			item = strings.TrimRight(item, javaBlanks)
		}
		items[i] = item
	}
	return items
}

// javaBlanks are what \s matches in Java.
const javaBlanks = " \t\n\v\f\r"

// TopicFilter accepts topics that are included and not excluded.
type TopicFilter struct {
	Include, Exclude Patterns
}

// Accepts reports whether the topic passes. A pattern that gives no answer in
// time excludes.
func (f TopicFilter) Accepts(topic string) bool {
	ok, _ := f.Explain(topic)
	return ok
}

// Explain is Accepts with the reason for a no.
func (f TopicFilter) Explain(topic string) (accepted bool, reason string) {
	return explain(f.Include, f.Exclude, "topics", topic)
}

// GroupFilter accepts consumer groups that are included and not excluded.
type GroupFilter struct {
	Include, Exclude Patterns
}

// Accepts reports whether the group passes. A pattern that gives no answer in
// time excludes.
func (f GroupFilter) Accepts(group string) bool {
	ok, _ := f.Explain(group)
	return ok
}

// Explain is Accepts with the reason for a no.
func (f GroupFilter) Explain(group string) (accepted bool, reason string) {
	return explain(f.Include, f.Exclude, "groups", group)
}

// ConfigFilter accepts the topic configs that are not excluded.
type ConfigFilter struct {
	Exclude Patterns
}

// Accepts reports whether the config is to be copied. A pattern that gives no
// answer in time excludes.
func (f ConfigFilter) Accepts(config string) bool {
	excluded, err := f.Exclude.Try(config)
	return err == nil && !excluded
}

func explain(include, exclude Patterns, key, name string) (accepted bool, reason string) {
	included, err := include.Try(name)
	if err != nil {
		return false, err.Error()
	}
	if !included {
		return false, "no pattern in " + key + " matches the whole name"
	}
	excluded, err := exclude.Try(name)
	if err != nil {
		return false, err.Error()
	}
	if excluded {
		return false, fmt.Sprintf("excluded by %q in %s.exclude", exclude.Which(name), key)
	}
	return true, ""
}
