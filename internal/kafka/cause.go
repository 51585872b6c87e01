package kafka

import "errors"

// CauseOf is what went wrong, for a sentence that says by itself what was tried,
// where and about what: the first [Error] in err's chain without its operation,
// cluster, subject and hint. Any other error is its own text.
func CauseOf(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e):
		return err.Error()
	case e.Code != CodeNone && e.Err != nil:
		return e.Code.String() + ": " + e.Err.Error()
	case e.Code != CodeNone:
		return e.Code.String()
	case e.Err != nil:
		return CauseOf(e.Err)
	}
	return e.Op
}
