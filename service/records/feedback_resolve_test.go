package records_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// issue returns new feedback of the actor on AHU 1, without its effects.
func issue(s *servicetest.Harness, by string) string {
	s.T.Helper()
	answer, err := s.Records.CreateFeedback(s.T.Context(), s.As(by), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
	if err != nil {
		s.T.Fatal(err)
	}
	s.ClearEffects(answer.RecordID)
	return answer.RecordID
}

func resolve(s *servicetest.Harness, key, id string) error {
	_, err := s.Records.ResolveFeedback(s.T.Context(), s.As(key), store.NoKey, id)
	return err
}

func TestResolveFeedback(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := issue(s, "ann")
	s.Exec(`UPDATE feedback SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
	answer, err := s.Records.ResolveFeedback(t.Context(), s.As("ann"), store.NoKey, id)
	if err != nil {
		t.Fatal(err)
	}
	record := servicetest.Read[models.FeedbackRecord](t, answer.Body)
	if record.Status != (models.Status{Code: "resolved", Name: "Resolved"}) || record.ResolvedAt == nil ||
		*record.ResolvedAt != record.ChangedAt || !record.ChangedAt.Time.After(record.CreatedAt.Time) {
		t.Errorf("the record is %+v", record)
	}
	shown, err := s.Records.Feedback(t.Context(), s.As("ann"), id)
	if err != nil || string(shown) != string(answer.Body) {
		t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
	}
	servicetest.Expect(t, "the events", s.EventsOf(id), "resolved")
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "eve resolved")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Ann Field issue.resolved")
	servicetest.Expect(t, "the history", s.LastChange(id), `ann issue.resolved: status "open">"resolved"`)
	body := string(servicetest.Claim(t, s.Fixture, "erp_hook").Deliveries[0].Body)
	if !strings.Contains(body, `"user_id":"`+s.ID("ann")+`"`) || !strings.Contains(body, `"code":"resolved"`) {
		t.Errorf("the event is %s", body)
	}
	servicetest.Expect(t, "again", servicetest.Outcome(s.ExpectUnchanged(id, func() error { return resolve(s, "ann", id) })), "rule_violation status")
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
		t.Run(test.name, func(t *testing.T) {
			servicetest.Expect(t, "the outcome", servicetest.Outcome(s.ExpectUnchanged(id, func() error { return resolve(s, test.actor, id) })), test.want)
		})
	}
	s.Exec(`UPDATE organizations SET suspended = true`)
	servicetest.Expect(t, "suspended", servicetest.Outcome(s.ExpectUnchanged(id, func() error { return resolve(s, "ann", id) })), "permission_denied")
	s.Exec(`UPDATE organizations SET suspended = false, read_only = true`)
	other := issue(s, "ann")
	servicetest.Expect(t, "read-only: only work orders are restricted", servicetest.Outcome(resolve(s, "ann", other)), "ok")
	s.Exec(`UPDATE organizations SET read_only = false`)
	for name, other := range map[string]string{"unknown": "iss_00000000000000000000000000", "no id": "nonsense", "a work order": s.WorkOrderIn("open")} {
		servicetest.Expect(t, name, servicetest.Outcome(resolve(s, "ann", other)), "not_found")
	}
	servicetest.Expect(t, "the manager", servicetest.Outcome(resolve(s, "ann", id)), "ok")
	servicetest.Expect(t, "notices for an integration", s.NoticesOf(id), "")
	own := issue(s, "ann")
	servicetest.Expect(t, "her own", servicetest.Outcome(resolve(s, "ann", own)), "ok")
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
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	slices.Sort(outcomes)
	servicetest.Expect(t, "the outcomes", strings.Join(outcomes, ", "), "ok, rule_violation status")
	servicetest.Expect(t, "the events", s.EventsOf(id), "resolved")
}
