package kafka

import (
	"errors"
	"fmt"
	"testing"
)

func TestCauseLeavesOutWhatItsSentenceSays(t *testing.T) {
	denied := &Error{Op: "list topics", Cluster: "A", Subject: "orders", Code: CodeTopicAuthorizationFailed, Hint: "grant DESCRIBE"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("no answer"), "no answer"},
		{CodeRequestTimedOut, "REQUEST_TIMED_OUT"},
		{denied, "TOPIC_AUTHORIZATION_FAILED"},
		{fmt.Errorf("round: %w", denied), "TOPIC_AUTHORIZATION_FAILED"},
		{&Error{Op: "create topic", Code: CodePolicyViolation, Err: errors.New("too many partitions")}, "POLICY_VIOLATION: too many partitions"},
		{&Error{Op: "create topic", Err: denied}, "TOPIC_AUTHORIZATION_FAILED"},
		{&Error{Op: "dial", Err: errors.New("refused")}, "refused"},
		{&Error{Op: "dial"}, "dial"},
	} {
		if got := CauseOf(c.err); got != c.want {
			t.Errorf("CauseOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
