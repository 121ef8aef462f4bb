package batch

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
)

// errPanicked is the error of a lookup that panicked.
var errPanicked = errors.New("the lookup panicked")

// Unavailable reports whether an SQLSTATE means that the server cannot serve now:
// connection exceptions (08), shutdown (57P), insufficient resources (53), a
// read-only standby (25006).
func Unavailable(sqlstate string) bool {
	return strings.HasPrefix(sqlstate, "08") || strings.HasPrefix(sqlstate, "57P") ||
		strings.HasPrefix(sqlstate, "53") || sqlstate == "25006"
}

// Interrupted reports whether an SQLSTATE means that a statement waited too long for a
// lock (55P03), or took too long (57014).
func Interrupted(sqlstate string) bool { return sqlstate == "55P03" || sqlstate == "57014" }

// guard runs a function that a caller passed in, and turns a panic into errPanicked.
// The log shows where, but not the panic's value, which may quote data.
func guard(log *slog.Logger, run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			log.Error("a lookup panicked", "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return run()
}
