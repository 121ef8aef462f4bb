package servicetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/imports"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/storetest"
)

// Harness is the fixture with more people and integrations, each as an actor.
type Harness struct {
	*Fixture
	T      testing.TB
	actors map[string]store.Actor
}

// NewHarness adds to the fixture: rita, who may read everything; sol, who may only
// read and change work orders; robot, a working integration; and in polar the team
// stock with ola, who has no incoming work orders.
func NewHarness(t testing.TB) *Harness {
	t.Helper()
	s := &Harness{Fixture: harnessTemplate.clone(t), T: t, actors: map[string]store.Actor{}}
	storetest.WaitForLocks(s.Store)
	s.Acme.IDs["acme"], s.Polar.IDs["polar"] = s.Acme.OrganizationID, s.Polar.OrganizationID
	return s
}

var harnessTemplate = template{make: func(ctx context.Context, t testing.TB, admin *pgx.Conn, server string) (string, error) {
	fixture, err := fixtureTemplate.find(ctx, t, admin, server)
	if err != nil {
		return "", err
	}
	name := fixture + "_harness"
	return name, ensure(ctx, admin, name, fixture, func(unfinished string) error {
		return fillTemplate(ctx, t, admin, unfinished, withDatabase(server, unfinished), func(ctx context.Context, f *Fixture) (importResults, error) {
			all := fixtureTemplate.imported(t)
			for into, file := range map[*imports.Result]string{&all.Acme: harnessOfAcme, &all.Polar: harnessOfPolar} {
				made, err := f.Imports.Run(ctx, []byte(file))
				if err != nil {
					return all, err
				}
				maps.Copy(into.IDs, made.IDs)
				maps.Copy(into.Integrations, made.Integrations)
			}
			return all, nil
		})
	})
}}

const (
	harnessOfAcme = `
organization: {key: acme}
permission_definitions: [{key: changing, name: Changing, applies_below: true, grants: [work_orders.read, work_orders.update]}]
people:
  - {key: rita, name: Rita Lake, email: rita@acme.example.com}
  - {key: sol, name: Sol Marsh, email: sol@acme.example.com}
integrations: [{key: robot, name: Robot, scopes: ["work_orders:read", "work_orders:write"], client_id: cli_robot, client_secret: secret-of-the-robot-integration}]
assignments:
  - {node: hq, identity: rita, definition: reading}
  - {node: hq, identity: sol, definition: changing}
  - {node: hq, identity: robot, definition: working}
`
	harnessOfPolar = `
organization: {key: polar}
people: [{key: ola, name: Ola Snow, email: ola@polar.example.com}]
teams: [{key: stock, name: Stock, members: [ola]}]
`
)

// As returns a person or an integration as an actor.
func (s *Harness) As(key string) store.Actor {
	s.T.Helper()
	if actor, known := s.actors[key]; known {
		return actor
	}
	_, ours := s.Acme.Integrations[key]
	_, theirs := s.Polar.Integrations[key]
	if ours || theirs {
		s.actors[key] = s.Actor(key)
	} else {
		s.actors[key] = Person(s.T, s.Fixture, key)
	}
	return s.actors[key]
}

func (s *Harness) IDs(keys ...string) []string {
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		ids = append(ids, s.ID(key))
	}
	return ids
}

// MustWrite returns the record of a successful write.
func (s *Harness) MustWrite(result store.WriteResult, err error) models.WorkOrderRecord {
	s.T.Helper()
	if err != nil {
		s.T.Fatalf("the write fails: %v", err)
	}
	return Read[models.WorkOrderRecord](s.T, result.Body)
}

// NewWorkOrder creates a work order on AHU 1 as the ERP and returns its id.
func (s *Harness) NewWorkOrder(workers, consultants []string) string {
	s.T.Helper()
	result, err := s.Records.CreateWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace filter", Assignees: s.IDs(workers...), Consultants: s.IDs(consultants...),
	})
	return s.MustWrite(result, err).ID
}

// WorkOrderIn returns a work order in the status, reached by operations whose effects
// are then deleted. The ERP is its worker, cat its consultant.
func (s *Harness) WorkOrderIn(status models.WorkOrderStatus) string {
	s.T.Helper()
	id := s.NewWorkOrder([]string{"erp"}, []string{"cat"})
	complete := func(complete bool) {
		s.T.Helper()
		s.MustWrite(s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.Completion(complete)))
	}
	switch status {
	case models.StatusOpen:
	case models.StatusInProgress:
		complete(false)
	case models.StatusSentToInspection:
		complete(true)
	case models.StatusBackFromInspection:
		complete(true)
		s.MustWrite(s.Records.ReviewWorkOrder(s.T.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
	case models.StatusComplete:
		complete(true)
		s.MustWrite(s.Records.ReviewWorkOrder(s.T.Context(), s.As("cat"), store.NoKey, id, records.Review{Approve: true}))
	case models.StatusCancelled:
		s.MustWrite(s.Records.CancelWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil))
	case models.StatusOnHold:
		s.MustWrite(s.Records.HoldWorkOrder(s.T.Context(), s.As("ann"), store.NoKey, id))
	}
	s.ClearEffects(id)
	return id
}

// ClearEffects deletes the effects of the record's changes except its history.
func (s *Harness) ClearEffects(id string) {
	for _, sql := range []string{
		`DELETE FROM events WHERE record_id = $1`, `DELETE FROM open_deliveries WHERE record_id = $1`,
		`DELETE FROM deliveries WHERE record_id = $1`, `DELETE FROM log WHERE record_id = $1 AND changes IS NULL`, `UPDATE log SET actor_name = NULL WHERE record_id = $1`,
		`DELETE FROM notices WHERE record_id = $1`,
	} {
		s.Exec(sql, id)
	}
}

// WithKeys replaces the ids in a string by their keys.
func (f *Fixture) WithKeys(text string) string {
	var pairs []string
	for _, imported := range []map[string]string{f.Acme.IDs, f.Polar.IDs} {
		for key, id := range imported {
			pairs = append(pairs, id, key)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// RolesOf are the workers and the consultants of a work order by their keys.
func (s *Harness) RolesOf(id string) string {
	s.T.Helper()
	return s.WithKeys(Value[string](s.Fixture, `SELECT coalesce(string_agg(identity_id, ' ' ORDER BY position) FILTER (WHERE role = 'worker'), '')
		|| ' | ' || coalesce(string_agg(identity_id, ' ' ORDER BY position) FILTER (WHERE role = 'consultant'), '') FROM work_order_assignees WHERE work_order_id = $1`, id))
}

// StatusOf returns the status of a work order and, if it is on hold, the previous one.
func (s *Harness) StatusOf(id string) string {
	return Value[string](s.Fixture, `SELECT status || coalesce(' from ' || held_from, '') FROM work_orders WHERE id = $1`, id)
}

// EventsOf lists the events about a record that the ERP's address gets, in order.
func (s *Harness) EventsOf(id string) string {
	return Value[string](s.Fixture, EventsQuery, id, s.ID("erp_hook"))
}

const EventsQuery = `
	SELECT coalesce(string_agg(substr(e.type, strpos(e.type, '.') + 1) || CASE WHEN e.data ? 'status'
		THEN format(' %s>%s', e.data ->> 'previous_status', e.data ->> 'status') ELSE '' END, ', ' ORDER BY v.id), '')
	FROM all_deliveries v JOIN events e ON e.id = v.event_id WHERE v.record_id = $1 AND v.webhook_id = $2`

// NoticesOf lists the notices about a record: person and kind.
func (s *Harness) NoticesOf(id string) string {
	return s.WithKeys(Value[string](s.Fixture, `
		SELECT coalesce(string_agg(person_id || ' ' || substr(n.kind, strpos(n.kind, '.') + 1), ', ' ORDER BY i.name, n.id), '')
		FROM notices n JOIN identities i ON i.id = n.person_id WHERE record_id = $1`, id))
}

// LogOf lists the Log Records of a record in the log of its organization, which made the first:
// actor and action.
func (s *Harness) LogOf(id string) string {
	return Value[string](s.Fixture, `
		SELECT coalesce(string_agg(actor_name || ' ' || action, ', ' ORDER BY id), '') FROM log_records
		WHERE record_id = $1 AND organization_id = coalesce((SELECT organization_id FROM log WHERE record_id = $1 AND changes IS NOT NULL ORDER BY id LIMIT 1), organization_id)`, id)
}

// LastChange returns the newest entry of a record's history: actor, action and changes.
func (s *Harness) LastChange(id string) string {
	s.T.Helper()
	entries, err := s.Records.History(s.T.Context(), s.As("ann"), id)
	Must(s.T, err)
	e := entries[len(entries)-1]
	said := s.WithKeys(e.ActorID) + " " + e.Action + ":"
	for _, name := range slices.Sorted(maps.Keys(e.Changes)) {
		said += fmt.Sprintf(" %s %s>%s", name, e.Changes[name].From, e.Changes[name].To)
	}
	return said
}

// ExpectUnchanged reports an error if the write, which fails, changed anything.
func (s *Harness) ExpectUnchanged(id string, do func() error) error {
	s.T.Helper()
	const everything = `
		SELECT (SELECT to_jsonb(w)::text FROM work_orders w WHERE w.id = $1) || (SELECT count(*) FROM history WHERE record_id = $1)
			|| ' ' || (SELECT count(*) FROM log_records WHERE record_id = $1) || ' ' || (SELECT count(*) FROM notices WHERE record_id = $1)
			|| ' ' || (SELECT count(*) FROM events WHERE record_id = $1)`
	sql := everything
	if models.IsID(id, models.PrefixFeedback) {
		sql = strings.Replace(everything, "work_orders w", "feedback w", 1)
	}
	before := Value[string](s.Fixture, sql, id)
	err := do()
	if after := Value[string](s.Fixture, sql, id); after != before {
		s.T.Errorf("it changed something:\n%s\n%s", before, after)
	}
	return err
}

// Must fails the test if one of the steps fails.
func Must(t testing.TB, steps ...error) {
	t.Helper()
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ErrorOf returns the error of a call that returns something else, too.
func ErrorOf[T any](_ T, err error) error { return err }

// Outcome returns "ok", or the code and the rule of an error.
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	said := string(models.CodeOf(err))
	if rejected, ok := errors.AsType[*models.Error](err); ok && rejected.Rule != "" {
		said += " " + string(rejected.Rule)
	}
	return said
}

// Expect compares two values.
func Expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// Connection connects to the database without the program's pool and its settings. exec
// runs a statement that must succeed.
func Connection(t *testing.T, url string) (conn *pgx.Conn, exec func(sql string, args ...any)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	Must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn, func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
