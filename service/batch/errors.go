package batch

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unavailable reports whether an SQLSTATE says that the server cannot serve now:
// connection exceptions (08), shutdown (57P), insufficient resources (53), a
// read-only standby (25006).
func Unavailable(sqlstate string) bool {
	return strings.HasPrefix(sqlstate, "08") || strings.HasPrefix(sqlstate, "57P") ||
		strings.HasPrefix(sqlstate, "53") || sqlstate == "25006"
}

// rejected returns the SQLSTATE with which Postgres rejected a statement, and false
// if it could not be reached or could not serve.
func rejected(err error) (sqlstate string, ok bool) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || Unavailable(pg.Code) {
		return "", false
	}
	return pg.Code, true
}

// retryable reports whether the transaction lost against another: a serialization
// failure or a deadlock.
func retryable(err error) bool {
	code, _ := rejected(err)
	return code == "40001" || code == "40P01"
}
