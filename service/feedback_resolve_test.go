package service_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service"
)

// issue returns new feedback of the actor on AHU 1, without its effects.
func (s *harness) issue(by string) string {
	s.t.Helper()
	answer, err := s.CreateFeedback(s.t.Context(), s.as(by), service.RequestKey{}, service.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.clearEffects(answer.RecordID)
	return answer.RecordID
}

func (s *harness) resolve(key, id string) error {
	_, err := s.ResolveFeedback(s.t.Context(), s.as(key), service.RequestKey{}, id)
	return err
}

func TestResolveFeedback(t *testing.T) {
	s := newHarness(t)
	id := s.issue("ann")
	s.Exec(`UPDATE feedback SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
	answer, err := s.ResolveFeedback(t.Context(), s.as("ann"), service.RequestKey{}, id)
	if err != nil {
		t.Fatal(err)
	}
	record := read[models.FeedbackRecord](t, answer.Body)
	if record.Status != (models.Status{Code: "resolved", Name: "Resolved"}) || record.ResolvedAt == nil ||
		*record.ResolvedAt != record.ChangedAt || !record.ChangedAt.Time.After(record.CreatedAt.Time) {
		t.Errorf("the record is %+v", record)
	}
	shown, err := s.Feedback(t.Context(), s.as("ann"), id)
	if err != nil || string(shown) != string(answer.Body) {
		t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
	}
	expect(t, "the events", s.eventsOf(id), "resolved")
	expect(t, "the notices", s.noticesOf(id), "eve resolved")
	expect(t, "the Log Records", s.logOf(id), "Ann Field issue.resolved")
	expect(t, "the history", s.lastChange(id), `ann issue.resolved: status "open">"resolved"`)
	body := string(claim(t, s.Fixture, "erp_hook").Deliveries[0].Body)
	if !strings.Contains(body, `"user_id":"`+s.ID("ann")+`"`) || !strings.Contains(body, `"code":"resolved"`) {
		t.Errorf("the event is %s", body)
	}
	expect(t, "again", outcome(s.expectUnchanged(id, func() error { return s.resolve("ann", id) })), "rule_violation status")
}

func TestResolveFeedbackNeedsThePermission(t *testing.T) {
	s := newHarness(t)
	s.Exec(`INSERT INTO permission_definitions (id, organization_id, name, applies_below, grants)
		VALUES ('def_resolving', $1, 'Resolving', true, '{feedback.resolve}'), ('def_listening', $1, 'Listening', true, '{feedback.read}')`, s.Acme.OrganizationID)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		VALUES ($1, $2, 'def_resolving', $4), ($1, $3, 'def_listening', $4)`, s.ID("ahu1"), s.ID("zed"), s.ID("eve"), s.Acme.OrganizationID)
	id := s.issue("erp")
	for _, test := range []struct{ name, actor, want string }{
		{"one who reads it only", "eve", "permission_denied"},
		{"one who may resolve but not read", "zed", "not_found"},
		{"one who may not read it", "cat", "not_found"},
		{"an integration with every grant", "erp", "permission_denied"},
		{"a person of a service company", "pia", "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, "the outcome", outcome(s.expectUnchanged(id, func() error { return s.resolve(test.actor, id) })), test.want)
		})
	}
	for column, want := range map[string]string{"read_only": "read_only", "suspended": "permission_denied"} {
		s.Exec(`UPDATE organizations SET ` + column + ` = true`)
		expect(t, column, outcome(s.expectUnchanged(id, func() error { return s.resolve("ann", id) })), want)
		s.Exec(`UPDATE organizations SET ` + column + ` = false`)
	}
	for name, other := range map[string]string{"unknown": "iss_00000000000000000000000000", "no id": "nonsense", "a work order": s.workOrderIn("open")} {
		expect(t, name, outcome(s.resolve("ann", other)), "not_found")
	}
	expect(t, "the manager", outcome(s.resolve("ann", id)), "ok")
	expect(t, "notices for an integration", s.noticesOf(id), "")
	own := s.issue("ann")
	expect(t, "her own", outcome(s.resolve("ann", own)), "ok")
	expect(t, "notices of her own action", s.noticesOf(own), "")
}

func TestOnlyOneOfTwoResolves(t *testing.T) {
	s := newHarness(t)
	id, ann := s.issue("erp"), s.as("ann")
	held, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), `SELECT FROM feedback WHERE id = $1 FOR UPDATE`, id); err != nil {
		t.Fatal(err)
	}
	outcomes := make([]string, 2)
	var both sync.WaitGroup
	for i := range outcomes {
		both.Go(func() {
			_, err := s.ResolveFeedback(t.Context(), ann, service.RequestKey{}, id)
			outcomes[i] = outcome(err)
		})
	}
	awaitLocks(t, s.Fixture, 2)
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	slices.Sort(outcomes)
	expect(t, "the outcomes", strings.Join(outcomes, ", "), "ok, rule_violation status")
	expect(t, "the events", s.eventsOf(id), "resolved")
}
