package records_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// issue returns new feedback of someone on AHU 1, without its effects.
func issue(s *servicetest.Harness, by string) string {
	s.T.Helper()
	id := gives(s, by)
	s.ClearEffects(id)
	return id
}

func TestResolveFeedback(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := issue(s, "ann")
	s.Exec(`UPDATE feedback SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
	answer, err := s.Records.ResolveFeedback(t.Context(), s.As("ann"), store.NoKey, id)
	servicetest.Must(t, err)
	record := servicetest.Read[models.FeedbackRecord](t, answer.Body)
	if record.Status != (models.Status{Code: "resolved", Name: "Resolved"}) || record.ResolvedAt == nil ||
		*record.ResolvedAt != record.ChangedAt || !record.ChangedAt.Time.After(record.CreatedAt.Time) {
		t.Errorf("the record is %+v", record)
	}
	servicetest.Expect(t, "the events", s.EventsOf(id), "resolved")
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "eve resolved")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Ann Field issue.resolved")
	servicetest.Expect(t, "the history", s.LastChange(id), `ann issue.resolved: status "open">"resolved"`)
	body := string(servicetest.Claim(t, s.Fixture, "erp_hook").Deliveries[0].Body)
	if !strings.Contains(body, `"user_id":"`+s.ID("ann")+`"`) || !strings.Contains(body, `"code":"resolved"`) {
		t.Errorf("the event is %s", body)
	}
	expectOutcome(t, s, "again", id, func() error { return resolves(s, "ann", id) }, wrongStatus)
}

func TestResolveFeedbackNeedsThePermission(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`INSERT INTO permission_definitions (id, organization_id, name, applies_below, grants)
		VALUES ('def_resolving', $1, 'Resolving', true, '{feedback.resolve}'), ('def_listening', $1, 'Listening', true, '{feedback.read}')`, s.Acme.OrganizationID)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		VALUES ($1, $2, 'def_resolving', $4), ($1, $3, 'def_listening', $4)`, s.ID("ahu1"), s.ID("zed"), s.ID("eve"), s.Acme.OrganizationID)
	id := issue(s, "erp")
	for _, test := range []struct{ name, actor, want string }{
		{"one who reads it only", "eve", "permission_denied"},
		{"one who may resolve but not read", "zed", "not_found"},
		{"one who may not read it", "cat", "not_found"},
		{"an integration with every grant", "erp", "permission_denied"},
		{"a person of a service company", "pia", "not_found"},
	} {
		expectOutcome(t, s, test.name, id, func() error { return resolves(s, test.actor, id) }, test.want)
	}
	s.Exec(`UPDATE organizations SET suspended = true`)
	expectOutcome(t, s, "suspended", id, func() error { return resolves(s, "ann", id) }, denied)
	s.Exec(`UPDATE organizations SET suspended = false, read_only = true`)
	other := issue(s, "ann")
	servicetest.Expect(t, "read-only: only work orders are restricted", servicetest.Outcome(resolves(s, "ann", other)), "ok")
	s.Exec(`UPDATE organizations SET read_only = false`)
	for name, other := range map[string]string{"unknown": "iss_00000000000000000000000000", "no id": "nonsense", "a work order": s.WorkOrderIn("open")} {
		servicetest.Expect(t, name, servicetest.Outcome(resolves(s, "ann", other)), "not_found")
	}
	servicetest.Expect(t, "the manager", servicetest.Outcome(resolves(s, "ann", id)), "ok")
	servicetest.Expect(t, "notices for an integration", s.NoticesOf(id), "")
	own := issue(s, "ann")
	servicetest.Expect(t, "her own", servicetest.Outcome(resolves(s, "ann", own)), "ok")
	servicetest.Expect(t, "notices of her own action", s.NoticesOf(own), "")
}

func TestOnlyOneOfTwoResolves(t *testing.T) {
	s := servicetest.NewHarness(t)
	id, ann := issue(s, "erp"), s.As("ann")
	processes := []*service.Service{s.Service, s.NewInstance()}
	storetest.WaitForLocks(processes[1].Store)
	held := servicetest.Begin(t, s.Fixture)
	servicetest.ExecIn(t, held, `SELECT FROM feedback WHERE id = $1 FOR UPDATE`, id)
	outcomes := make([]string, len(processes))
	var both sync.WaitGroup
	for i, process := range processes {
		both.Go(func() {
			_, err := process.Records.ResolveFeedback(t.Context(), ann, store.NoKey, id)
			outcomes[i] = servicetest.Outcome(err)
		})
	}
	servicetest.AwaitLocks(t, s.Fixture, 2)
	servicetest.Must(t, held.Commit(t.Context()))
	both.Wait()
	slices.Sort(outcomes)
	servicetest.Expect(t, "the outcomes", strings.Join(outcomes, ", "), "ok, rule_violation status")
	servicetest.Expect(t, "the events", s.EventsOf(id), "resolved")
}
