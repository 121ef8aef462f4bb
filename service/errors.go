package service

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"millwright/models"
	"millwright/service/batch"
)

var errExternalIDTaken = &models.Error{
	Code:   models.CodeExternalIDTaken,
	Detail: "Another feedback of the organization has this external_id.",
}

// constraintErrors are the refusals that only the database can decide, by the
// constraint that decides them.
var constraintErrors = map[string]*models.Error{
	"feedback_external_id": errExternalIDTaken,
	"webhooks_integration_id_place_key": {
		Code:   models.CodeValidationFailed,
		Detail: "The integration's addresses are being changed. Try again.",
	},
}

// invalid returns validation_failed if anything is wrong with a field.
func invalid(fields []models.FieldError) error {
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// translate turns what the database says into the service's own errors: a known
// constraint into its refusal, an unreachable database into unavailable. What
// else the database says of a statement is internal and loses the values it may
// quote. Any other error passes through and is internal.
func (s *Service) translate(err error) error {
	if err == nil {
		return nil
	}
	if _, own := errors.AsType[*models.Error](err); own {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if refusal, known := constraintErrors[pg.ConstraintName]; known {
			return refusal
		}
		if batch.Unavailable(pg.Code) {
			return s.unavailable(err)
		}
		return &statementError{pg}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return s.unavailable(err)
	}
	if _, ok := errors.AsType[net.Error](err); ok && !errors.Is(err, context.Canceled) {
		return s.unavailable(err)
	}
	if errors.Is(err, driver.ErrBadConn) || strings.Contains(err.Error(), "conn closed") || pgconn.SafeToRetry(err) {
		return s.unavailable(err)
	}
	return err
}

// statementError is what the database says of a statement, fit for logs and
// histories: a message that may quote values is left out. It does not unwrap,
// since Temporal writes down a whole chain of errors; errors.As finds the cause.
type statementError struct{ cause *pgconn.PgError }

// namingClasses are the classes of SQLSTATE whose messages name tables, columns
// and constraints at most: integrity, transactions, objects and their states,
// syntax, resources, operators. Others, above all data exceptions (22) and what
// functions raise (P0), quote what they were given.
var namingClasses = []string{"08", "23", "25", "40", "42", "53", "54", "55", "57"}

func (e *statementError) Error() string {
	message := "the database refused a statement"
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

func (s *Service) unavailable(err error) error {
	s.Log.Warn("the database cannot be reached", "error", err.Error())
	return models.Errorf(models.CodeUnavailable, "The service cannot reach its database. Try again in a few seconds.")
}
