package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A statement that fails because the server does, is not the service's fault.
func TestFailuresOfTheServerAreUnavailable(t *testing.T) {
	var logged []string
	s := &store.Store{Options: store.Options{Unreachable: func(err error) { logged = append(logged, err.Error()) }}}
	for code, want := range map[string]models.Code{
		"53100": models.CodeUnavailable, "XX000": models.CodeUnavailable, "XX002": models.CodeInternal, "58030": models.CodeUnavailable,
		"57P01": models.CodeUnavailable, "25006": models.CodeUnavailable, "22P02": models.CodeInternal, "23514": models.CodeInternal, "57014": models.CodeInternal,
	} {
		err := s.Translate(&pgconn.PgError{Code: code, Message: "Mrs Quarrington"})
		servicetest.Expect(t, code, models.CodeOf(err), want)
	}
	if all := strings.Join(logged, "\n"); !strings.Contains(all, "XX000") || strings.Count(all, "Quarrington") != 3 { // 25, 53 and 57 quote no values
		t.Errorf("the log has %s", all)
	}
}

// Values that Postgres quotes in an error reach neither logs nor workflow histories:
// they are neither in the error's text nor in an error it wraps. errors.As still finds
// the cause.
func TestErrorsOmitValuesThatPostgresQuotes(t *testing.T) {
	s := &store.Store{}
	for _, c := range []struct {
		code, message, want string
	}{
		{"22P02", `invalid input syntax for type integer: "Mrs Quarrington"`, "the database rejected a statement (SQLSTATE 22P02)"},
		{"P0001", `Mrs Quarrington may not`, "the database rejected a statement (SQLSTATE P0001)"},
		{"42P01", `relation "lost" does not exist`, `relation "lost" does not exist (SQLSTATE 42P01)`},
		{"23514", `new row violates a check`, "new row violates a check (constraint broken of work_orders) (SQLSTATE 23514)"},
	} {
		cause := &pgconn.PgError{Code: c.code, Message: c.message, Detail: "Failing row contains (Mrs Quarrington).", Hint: "Quarrington"}
		if c.code == "23514" {
			cause.ConstraintName, cause.TableName = "broken", "work_orders"
		}
		err := s.Translate(fmt.Errorf("insert: %w", cause))
		if err.Error() != c.want {
			t.Errorf("%s reads %q, want %q", c.code, err, c.want)
		}
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			if strings.Contains(fmt.Sprintf("%v %+v", inner, inner), "Quarrington") {
				t.Errorf("%s quotes a value in its chain: %v", c.code, inner)
			}
		}
		if found, ok := errors.AsType[*pgconn.PgError](err); !ok || found != cause {
			t.Errorf("%s: errors.As does not find the cause", c.code)
		}
	}
}
