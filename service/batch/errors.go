package batch

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrRunAlone is returned by a write that cannot go on in a shared transaction. The
	// Writer retries it in its own.
	ErrRunAlone = errors.New("the write has to run alone")

	// errGroupFailed is returned if the group was rolled back and its writes run again.
	errGroupFailed = errors.New("the group was rolled back")
	// errNextGroup is returned if the rows of the write do not fit into its group.
	errNextGroup = errors.New("the write has to join the next group")
	// errPanicked is the error of a write or lookup that panicked.
	errPanicked = errors.New("the write or lookup panicked")
)

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

// Rejected reports whether Postgres rejected a statement, so that the transaction
// is rolled back. After a fatal error, or none at all, that is unknown.
func Rejected(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR"
}

// retryable reports whether the transaction lost against another: a serialization
// failure or a deadlock.
func retryable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01")
}

// reason names an error for a log line. A message of Postgres may quote values; its
// code does not.
func reason(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "SQLSTATE " + pg.Code
	}
	return err.Error()
}

// guard runs a function that a caller passed in, and turns a panic into errPanicked.
// The log shows where, but not the panic's value, which may quote data.
func guard(log *slog.Logger, run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			log.Error("a write or lookup panicked", "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return run()
}
