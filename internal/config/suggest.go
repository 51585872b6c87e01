package config

import (
	"slices"
	"strings"
)

// invented are keys that documentation and habit put into files and that never
// existed, with what was meant.
var invented = map[string]string{
	"emit.heartbeats":                  "emit.heartbeats.enabled",
	"emit.checkpoints":                 "emit.checkpoints.enabled",
	"emit.offset-syncs":                "emit.offset-syncs.enabled",
	"sync.group.offsets":               "sync.group.offsets.enabled",
	"sync.topic.acls":                  "sync.topic.acls.enabled",
	"sync.topic.configs":               "sync.topic.configs.enabled",
	"refresh.topics":                   "refresh.topics.enabled",
	"refresh.groups":                   "refresh.groups.enabled",
	"topics.whitelist":                 "topics",
	"whitelist":                        "topics",
	"topics.include":                   "topics",
	"topic":                            "topics",
	"topics.regex":                     "topics",
	"topics.pattern":                   "topics",
	"blacklist":                        "topics.exclude",
	"topics.excludes":                  "topics.exclude",
	"topic.exclude":                    "topics.exclude",
	"groups.whitelist":                 "groups",
	"groups.include":                   "groups",
	"group":                            "groups",
	"groups.pattern":                   "groups",
	"topic.blacklist":                  "topics.exclude",
	"group.blacklist":                  "groups.exclude",
	"bootstrap.server":                 "bootstrap.servers",
	"bootstrap":                        "bootstrap.servers",
	"brokers":                          "bootstrap.servers",
	"separator":                        "replication.policy.separator",
	"replication.policy":               "replication.policy.class",
	"offset.syncs.topic.location":      "offset-syncs.topic.location",
	"offsets.topic.replication.factor": "offset-syncs.topic.replication.factor",
}

// suggest returns the candidate that was probably meant by name, or "".
func suggest(name string, candidates []string) string {
	if meant, ok := invented[name]; ok && slices.Contains(candidates, meant) {
		return meant
	}
	lower := strings.ToLower(name)
	for _, guess := range []string{lower, lower + "d", lower + ".enabled", lower + "s", strings.ReplaceAll(lower, "_", "."), strings.ReplaceAll(lower, "-", ".")} {
		if guess != name && slices.Contains(candidates, guess) {
			return guess
		}
	}
	best, distance := "", min(max(2, len(name)/5), len(name)/2)+1
	for _, c := range candidates {
		if d := editDistance(name, c, distance); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance is the number of insertions, deletions, replacements and swaps
// of neighbours between two names, or limit if it is not smaller.
func editDistance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, prev[j]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return min(prev[len(b)], limit)
}
