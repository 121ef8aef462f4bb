package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

func (d desk) feedback(fields object) apitest.Answer {
	return d.As("erp", http.MethodPost, "/issues", with(object{"inventory_id": d.ID("ahu1"), "subject": "It squeaks"}, fields))
}

func TestCreateFeedback(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name   string
		fields object
		shown  object
	}{
		{"with little", nil, object{"description": nil, "external_id": nil}},
		{"with everything", object{"description": "All day.", "external_id": "DESK-1"}, nil},
		{"with nulls", object{"description": nil, "external_id": nil}, nil},
		{"with the longest texts", object{"subject": strings.Repeat("ä", 200), "description": strings.Repeat("ä", 10_000), "external_id": strings.Repeat("ä", 200)}, nil},
		{"on a location", object{"inventory_id": d.ID("hq")}, nil},
		{"on sub-equipment", object{"inventory_id": d.ID("fan1")}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := d.feedback(test.fields).Want(http.StatusCreated, "")
			for field, value := range with(object{
				"organization_id": d.Acme.OrganizationID, "inventory_id": d.ID("ahu1"), "subject": "It squeaks", "created_by": d.ID("erp"),
				"created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z", "resolved_at": nil,
			}, test.fields, test.shown) {
				want(t, field, answer.Field(field), value)
			}
			want(t, "the status", fmt.Sprint(answer.Field("status")), "map[code:open name:Open]")
			want(t, "Location", answer.Header.Get("Location"), "/v1/issues/"+answer.Text("id"))
			if !strings.HasPrefix(answer.Text("id"), "iss_") {
				t.Errorf("the id is %q, want iss_…", answer.Text("id"))
			}
			read := d.As("erp", http.MethodGet, "/issues/"+answer.Text("id"), nil).Want(http.StatusOK, "")
			want(t, "the record read afterwards", string(read.Body), string(answer.Body))
			want(t, "the ETag", read.Header.Get("ETag"), answer.Header.Get("ETag"))
		})
	}
}

func TestCreateFeedbackIsRefused(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name    string
		as      string
		fields  object
		status  int
		code    string
		pointer string
	}{
		{"without the scope", "reader", nil, 403, "insufficient_scope", ""},
		{"without a node", "erp", object{"inventory_id": ""}, 422, "validation_failed", "/inventory_id"},
		{"on an unknown node", "erp", object{"inventory_id": "loc_00000000000000000000000000"}, 422, "validation_failed", "/inventory_id"},
		{"on a node of another organization", "erp", object{"inventory_id": d.ID("depot")}, 422, "validation_failed", "/inventory_id"},
		{"on a node it may not see", "erp", object{"inventory_id": d.ID("annex")}, 422, "validation_failed", "/inventory_id"},
		{"with a null subject", "erp", object{"subject": nil}, 422, "validation_failed", "/subject"},
		{"with an empty subject", "erp", object{"subject": ""}, 422, "validation_failed", "/subject"},
		{"with a subject of 201 characters", "erp", object{"subject": strings.Repeat("ä", 201)}, 422, "validation_failed", "/subject"},
		{"with a description of 10,001 characters", "erp", object{"description": strings.Repeat("x", 10_001)}, 422, "validation_failed", "/description"},
		{"with an empty external id", "erp", object{"external_id": ""}, 422, "validation_failed", "/external_id"},
		{"with an external id of 201 characters", "erp", object{"external_id": strings.Repeat("x", 201)}, 422, "validation_failed", "/external_id"},
		{"with an external id that is a number", "erp", object{"external_id": 7}, 422, "validation_failed", "/external_id"},
		{"with a status", "erp", object{"status": "resolved"}, 422, "validation_failed", "/status"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := d.As(test.as, http.MethodPost, "/issues", with(object{"inventory_id": d.ID("ahu1"), "subject": "It squeaks"}, test.fields)).
				Want(test.status, test.code)
			if test.pointer != "" {
				want(t, "the pointer", answer.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			}
		})
	}
	t.Run("without a subject", func(t *testing.T) {
		d.As("erp", http.MethodPost, "/issues", object{"inventory_id": d.ID("ahu1")}).Want(http.StatusUnprocessableEntity, "validation_failed")
	})
	want(t, "feedback that refused calls left", servicetest.Value[int](d.Fixture, `SELECT count(*) FROM feedback`), 0)
}

// Spec section 4, rule 1, and section 5.
func TestFeedbackPermissions(t *testing.T) {
	d := newDesk(t)
	grants := func(names string) {
		d.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, d.ID("full"), names)
	}
	grants("{inventory.read,work_orders.read,work_orders.create,work_orders.update,work_orders.delete,work_orders.forward,feedback.read,feedback.resolve}")
	d.feedback(nil).Want(http.StatusForbidden, "permission_denied")
	grants("{feedback.create}")
	created := d.feedback(nil).Want(http.StatusCreated, "").Text("id")
	path := "/issues/" + created
	d.As("erp", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	grants("{feedback.read}")
	d.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")

	own := d.As("creator", http.MethodPost, "/issues", object{"inventory_id": d.ID("roof"), "subject": "It drips"}).Want(http.StatusCreated, "")
	want(t, "the people named without people:read", own.Field("people"), nil)
	d.As("creator", http.MethodGet, "/issues/"+own.Text("id"), nil).Want(http.StatusNotFound, "not_found")
	want(t, "the creator's list", len(d.As("creator", http.MethodGet, "/issues", nil).Want(http.StatusOK, "").Field("data").([]any)), 0)
	for _, id := range []string{"iss_00000000000000000000000000", "nonsense", "%00", d.ID("ahu1")} {
		d.As("erp", http.MethodGet, "/issues/"+id, nil).Want(http.StatusNotFound, "not_found")
	}
	d.As("reader", http.MethodGet, path, nil).Want(http.StatusForbidden, "insufficient_scope")

	grants("{feedback.read,feedback.create}")
	d.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, d.Acme.OrganizationID)
	d.feedback(nil).Want(http.StatusForbidden, "read_only")
	d.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
}

func TestFeedbackExternalIDIsUsedOnce(t *testing.T) {
	d := newDesk(t)
	first := d.feedback(object{"external_id": "DESK-1"}).Want(http.StatusCreated, "")
	d.feedback(object{"external_id": "DESK-1"}).Want(http.StatusConflict, "external_id_taken")
	d.As("creator", http.MethodPost, "/issues", object{"inventory_id": d.ID("roof"), "subject": "x", "external_id": "DESK-1"}).
		Want(http.StatusConflict, "external_id_taken")
	d.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at WHERE id = $1`, first.Text("id"))
	d.feedback(object{"external_id": "DESK-1"}).Want(http.StatusConflict, "external_id_taken")
	d.feedback(object{"external_id": "desk-1"}).Want(http.StatusCreated, "")
	d.feedback(nil).Want(http.StatusCreated, "")
	d.feedback(nil).Want(http.StatusCreated, "")
	t.Run("in each organization", func(t *testing.T) {
		d.Exec(`UPDATE integrations SET scopes = '{issues:write}' WHERE id = $1`, d.ID("dispatch"))
		d.Exec(`UPDATE permission_definitions SET grants = '{feedback.create}' WHERE organization_id = $1`, d.Polar.OrganizationID)
		body := object{"inventory_id": d.ID("depot"), "subject": "x", "external_id": "DESK-1"}
		d.As("dispatch", http.MethodPost, "/issues", body).Want(http.StatusCreated, "")
		d.As("dispatch", http.MethodPost, "/issues", body).Want(http.StatusConflict, "external_id_taken")
	})
	want(t, "events for Acme's feedback", servicetest.Value[int](d.Fixture, `SELECT count(*) FROM events WHERE organization_id = $1`, d.Acme.OrganizationID), 4)
}

func TestFeedbackIdempotency(t *testing.T) {
	d := newDesk(t)
	create := func(subject string) apitest.Answer {
		return d.As("erp", http.MethodPost, "/issues", object{"inventory_id": d.ID("ahu1"), "subject": subject, "external_id": "DESK-1"}, "Idempotency-Key", "key")
	}
	first := create("It squeaks").Want(http.StatusCreated, "")
	d.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at`)
	again := create("It squeaks").Want(http.StatusCreated, "")
	want(t, "the replay", string(again.Body), string(first.Body))
	want(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true")
	want(t, "Location", again.Header.Get("Location"), first.Header.Get("Location"))
	create("It roars").Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
	want(t, "feedback", servicetest.Value[int](d.Fixture, `SELECT count(*) FROM feedback`), 1)
}

func TestConcurrentFeedbackWithOneExternalID(t *testing.T) {
	d := newDesk(t)
	d.Token("erp")
	statuses := together(10, func(int) int { return d.feedback(object{"external_id": "DESK-1"}).Status })
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 9 {
		t.Errorf("ten are answered %v, want one 201 and nine 409", statuses)
	}
	want(t, "events", servicetest.Value[int](d.Fixture, `SELECT count(*) FROM events WHERE type = 'issue.created'`), 1)
}

// together makes n calls at once and counts their results.
func together[T comparable](n int, call func(i int) T) map[T]int {
	var (
		mu      sync.Mutex
		results = map[T]int{}
		calls   sync.WaitGroup
		start   = make(chan struct{})
	)
	for i := range n {
		calls.Go(func() {
			<-start
			result := call(i)
			mu.Lock()
			defer mu.Unlock()
			results[result]++
		})
	}
	close(start)
	calls.Wait()
	return results
}

func TestFeedbackLeavesEverything(t *testing.T) {
	d := newDesk(t)
	d.Exec(`UPDATE webhooks SET events = events || '{issue.created}'`)
	reader := func(scopes, grants string) {
		d.Exec(`UPDATE integrations SET scopes = $2::text[] WHERE id = $1`, d.ID("reader"), scopes)
		d.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, d.ID("reading"), grants)
	}
	deliveries := func(id string) string {
		return d.named(servicetest.Value[string](d.Fixture, `SELECT coalesce(string_agg(DISTINCT i.id, ' ' ORDER BY i.id), '') FROM deliveries v
			JOIN webhooks h ON h.id = v.webhook_id JOIN integrations i ON i.id = h.integration_id
			WHERE v.record_id = $1 AND i.id <> $2`, id, d.ID("erp")))
	}
	for _, test := range []struct{ name, scopes, grants, others string }{
		{"the reader lacks the scope", "{work_orders:read}", "{work_orders.read,feedback.read}", ""},
		{"the reader lacks the permission", "{work_orders:read,issues:read}", "{work_orders.read}", ""},
		{"the reader has both", "{work_orders:read,issues:read}", "{feedback.read}", "reader"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader(test.scopes, test.grants)
			id := d.feedback(object{"description": "All day."}).Want(http.StatusCreated, "").Text("id")
			want(t, "the others who get the event", deliveries(id), test.others)
			want(t, "the event", d.events(id), "issue.created")
			want(t, "the history", d.history(id), "issue.created: description inventory_id status subject")
			want(t, "the Log Records", d.log(id), "ERP (API) issue.created")
			want(t, "the notices: the nearest manager's", d.notices(id), "Ann Field issue.created")
		})
	}
	t.Run("an address that did not subscribe", func(t *testing.T) {
		d.Exec(`UPDATE webhooks SET events = '{issue.resolved}' WHERE integration_id = $1`, d.ID("reader"))
		want(t, "the others who get the event", deliveries(d.feedback(nil).Text("id")), "")
	})
}

func TestListFeedback(t *testing.T) {
	d := newDesk(t)
	var ids []string
	for i, node := range []string{"hq", "hvac", "fan1", "roof"} {
		ids = append(ids, d.feedback(object{"inventory_id": d.ID(node), "external_id": fmt.Sprint("DESK-", i)}).Want(http.StatusCreated, "").Text("id"))
		d.Clock.Advance(time.Second)
	}
	d.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at WHERE id = $1`, ids[1])
	d.Exec(`UPDATE integrations SET scopes = '{issues:read}' WHERE id = $1`, d.ID("reader"))
	d.Exec(`UPDATE permission_definitions SET grants = '{feedback.read}' WHERE id = $1`, d.ID("reading"))
	for _, test := range []struct{ name, as, query, found string }{
		{"all, newest first", "erp", "", "3210"},
		{"open ones", "erp", "?status=open", "320"},
		{"resolved ones", "erp", "?status=resolved", "1"},
		{"both", "erp", "?status=open,resolved", "3210"},
		{"of a node with everything below", "erp", "?inventory_id=" + d.ID("hvac"), "21"},
		{"of the lowest node", "erp", "?inventory_id=" + d.ID("fan1"), "2"},
		{"of an unknown node", "erp", "?inventory_id=nonsense", ""},
		{"by their reference", "erp", "?external_id=DESK-2", "2"},
		{"by an unknown reference", "erp", "?external_id=DESK", ""},
		{"by everything at once", "erp", "?external_id=DESK-2&status=open&inventory_id=" + d.ID("hvac"), "2"},
		{"by what excludes each other", "erp", "?external_id=DESK-2&status=resolved", ""},
		{"those the reader may read", "reader", "", "21"},
		{"the first two", "erp", "?limit=2", "32"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := ""
			for _, record := range d.As(test.as, http.MethodGet, "/issues"+test.query, nil).Want(http.StatusOK, "").Field("data").([]any) {
				for i, id := range ids {
					if record.(object)["id"] == id {
						found += fmt.Sprint(i)
					}
				}
			}
			want(t, "found", found, test.found)
		})
	}
	d.As("erp", http.MethodGet, "/issues?status=closed", nil).Want(http.StatusBadRequest, "invalid_request")
	d.As("erp", http.MethodGet, "/issues?assignee_id="+d.ID("bob"), nil).Want(http.StatusBadRequest, "invalid_request")
}
