package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"millwright/models"
	"millwright/service/slots"
)

// ExternalIDTaken is the error of a creation whose external_id the feedback has, "" if the
// caller may not read it.
func ExternalIDTaken(existingID string) *models.Error {
	err := models.Errorf(models.CodeExternalIDTaken, "Other feedback of the organization has this external_id.")
	err.ExistingID = existingID
	return err
}

// constraintErrors are the errors of rules that only a constraint of the database can
// check, by the constraint's name.
var constraintErrors = map[string]*models.Error{
	"feedback_external_id": ExternalIDTaken(""),
	"webhooks_integration_id_slot_key": {
		Code:   models.CodeValidationFailed,
		Detail: "The integration's addresses are being changed. Try again.",
	},
}

// Invalid returns validation_failed if anything is wrong with a field.
func Invalid(fields []models.FieldError) error {
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// Translate turns database errors into the service's own: a known constraint into its
// error, an unreachable database into unavailable. Other errors of statements are
// internal and lose the values they may quote. Any other error is returned as it is.
func (s *Store) Translate(err error) error {
	if err == nil {
		return nil
	}
	if _, own := errors.AsType[*models.Error](err); own {
		return err
	}
	if errors.Is(err, slots.ErrOverloaded) {
		s.Overloaded()
		return models.Errorf(models.CodeUnavailable, "Too many calls of the organization are waiting. Try again in a few seconds.")
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if rule, known := constraintErrors[pg.ConstraintName]; known {
			return rule
		}
		if isUnavailable(pg.Code) {
			return s.unavailable(&statementError{pg})
		}
		return &statementError{pg}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return s.unavailable(err)
	}
	if _, ok := errors.AsType[net.Error](err); ok && !errors.Is(err, context.Canceled) {
		return s.unavailable(err)
	}
	if connectionLost(err) {
		return s.unavailable(err)
	}
	return err
}

// connectionLost reports whether the error means that the connection was lost, or could not be used. pgx returns
// io.ErrUnexpectedEOF as it is if the server closes the connection.
func connectionLost(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		strings.Contains(err.Error(), "conn closed") || pgconn.SafeToRetry(err)
}

// statementError is Postgres's error for a statement, safe for logs and workflow
// histories: it leaves out messages that may quote values. It does not unwrap, since
// Temporal records the whole chain of errors; errors.As finds the cause.
type statementError struct{ cause *pgconn.PgError }

// namingClasses are the classes of SQLSTATE whose messages name nothing but tables,
// columns and constraints: integrity, transactions, objects and their states, syntax,
// resources, operators. Others quote values, above all data exceptions (22) and
// errors that functions raise (P0).
var namingClasses = []string{"08", "23", "25", "40", "42", "53", "54", "55", "57"}

func (e *statementError) Error() string {
	message := "the database rejected a statement"
	if slices.ContainsFunc(namingClasses, func(class string) bool { return strings.HasPrefix(e.cause.Code, class) }) {
		message = e.cause.Message
	}
	if e.cause.ConstraintName != "" {
		message += " (constraint " + e.cause.ConstraintName + " of " + e.cause.TableName + ")"
	}
	return message + " (SQLSTATE " + e.cause.Code + ")"
}

func (e *statementError) As(target any) bool {
	cause, ok := target.(**pgconn.PgError)
	if ok {
		*cause = e.cause
	}
	return ok
}

// Limited turns the end of a statement at its time limit, and a deadlock that was lost each time, into unavailable,
// for calls whose time is bounded so that they delay no other.
func Limited(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (isInterrupted(pg.Code) || lostDeadlock(err)) {
		return models.Errorf(models.CodeUnavailable, "The call took too long, or another call is changing the same record. Try again in a few seconds.")
	}
	return err
}

// rejected reports whether Postgres rejected a statement, so that the transaction
// is rolled back. After a fatal error, or none at all, that is unknown.
func rejected(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR"
}

// lostDeadlock reports whether the transaction lost against another: a serialization
// failure or a deadlock.
func lostDeadlock(err error) bool {
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

// unavailable reports the error of a database that could not be reached, and returns that of
// the call.
func (s *Store) unavailable(err error) error {
	s.Unreachable(err)
	return models.Errorf(models.CodeUnavailable, "The service cannot reach its database. Try again in a few seconds.")
}

// isUnavailable reports whether an SQLSTATE means that the server cannot serve now:
// connection exceptions (08), shutdown (57P), insufficient resources (53), failures of its
// own (58, XX000), as which a full disk may show too, a read-only standby (25006).
func isUnavailable(sqlstate string) bool {
	return slices.ContainsFunc([]string{"08", "57P", "53", "58", "XX000", "25006"}, func(class string) bool { return strings.HasPrefix(sqlstate, class) })
}

// isInterrupted reports whether an SQLSTATE means that a statement waited too long for a
// lock (55P03), or took too long (57014).
func isInterrupted(sqlstate string) bool { return sqlstate == "55P03" || sqlstate == "57014" }
