package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

func (h harness) feedback(fields object) apitest.Response {
	return h.As("erp", http.MethodPost, "/issues", with(object{"inventory_id": h.ID("ahu1"), "subject": "It squeaks"}, fields))
}

func TestCreateFeedback(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name   string
		fields object
		shown  object
	}{
		{"with the required fields only", nil, object{"description": nil, "external_id": nil}},
		{"with everything", object{"description": "All day.", "external_id": "DESK-1"}, nil},
		{"with nulls", object{"description": nil, "external_id": nil}, nil},
		{"with the longest strings", object{"subject": strings.Repeat("ä", 200), "description": strings.Repeat("ä", 10_000), "external_id": strings.Repeat("ä", 200)}, nil},
		{"on a location", object{"inventory_id": h.ID("hq")}, nil},
		{"on sub-equipment", object{"inventory_id": h.ID("fan1")}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := h.feedback(test.fields).Want(http.StatusCreated, "")
			for field, value := range with(object{
				"organization_id": h.Acme.OrganizationID, "inventory_id": h.ID("ahu1"), "subject": "It squeaks", "created_by": h.ID("erp"),
				"created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z", "resolved_at": nil,
			}, test.fields, test.shown) {
				want(t, field, response.Field(field), value)
			}
			want(t, "the status", fmt.Sprint(response.Field("status")), "map[code:open name:Open]")
			want(t, "Location", response.Header.Get("Location"), "/v1/issues/"+response.Text("id"))
			if !strings.HasPrefix(response.Text("id"), "iss_") {
				t.Errorf("the id is %q, want iss_…", response.Text("id"))
			}
			read := h.As("erp", http.MethodGet, "/issues/"+response.Text("id"), nil).Want(http.StatusOK, "")
			want(t, "the record read afterwards", string(read.Body), string(response.Body))
			want(t, "the ETag", read.Header.Get("ETag"), response.Header.Get("ETag"))
		})
	}
}

func TestInvalidFeedbackIsRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
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
		{"on a node of another organization", "erp", object{"inventory_id": h.ID("depot")}, 422, "validation_failed", "/inventory_id"},
		{"on a node it may not see", "erp", object{"inventory_id": h.ID("annex")}, 422, "validation_failed", "/inventory_id"},
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
			response := h.As(test.as, http.MethodPost, "/issues", with(object{"inventory_id": h.ID("ahu1"), "subject": "It squeaks"}, test.fields)).
				Want(test.status, test.code)
			if test.pointer != "" {
				want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			}
		})
	}
	t.Run("without a subject", func(t *testing.T) {
		h.As("erp", http.MethodPost, "/issues", object{"inventory_id": h.ID("ahu1")}).Want(http.StatusUnprocessableEntity, "validation_failed")
	})
	want(t, "feedback of rejected calls", servicetest.Value[int](h.Fixture, `SELECT count(*) FROM feedback`), 0)
}

// api.md 4.1 and 5.6.
func TestFeedbackPermissions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	grants := func(names string) {
		h.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, h.ID("full"), names)
	}
	grants("{inventory.read,work_orders.read,work_orders.create,work_orders.update,work_orders.delete,work_orders.forward,feedback.read,feedback.resolve}")
	h.feedback(nil).Want(http.StatusForbidden, "permission_denied")
	grants("{feedback.create}")
	created := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
	path := "/issues/" + created
	h.As("erp", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	grants("{feedback.read}")
	h.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")

	own := h.As("creator", http.MethodPost, "/issues", object{"inventory_id": h.ID("roof"), "subject": "It drips"}).Want(http.StatusCreated, "")
	want(t, "the people named without people:read", own.Field("people"), nil)
	h.As("creator", http.MethodGet, "/issues/"+own.Text("id"), nil).Want(http.StatusNotFound, "not_found")
	want(t, "the creator's list", len(h.As("creator", http.MethodGet, "/issues", nil).Want(http.StatusOK, "").Field("data").([]any)), 0)
	for _, id := range []string{"iss_00000000000000000000000000", "nonsense", "%00", h.ID("ahu1")} {
		h.As("erp", http.MethodGet, "/issues/"+id, nil).Want(http.StatusNotFound, "not_found")
	}
	h.As("reader", http.MethodGet, path, nil).Want(http.StatusForbidden, "insufficient_scope")

	grants("{feedback.read,feedback.create}")
	h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
	h.feedback(nil).Want(http.StatusCreated, "") // only work orders are restricted (api.md 4.8)
	h.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
}

// existing_id is there if, and only if, a read of that feedback by the same token would
// succeed.
func TestExternalIDTakenNamesReadableFeedback(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	grant := func(definition, names string) {
		h.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, h.ID(definition), names)
	}
	scopes := func(names string) {
		h.Exec(`UPDATE integrations SET scopes = $2::text[] WHERE id = $1`, h.ID("creator"), names)
	}
	onRoof := h.feedback(object{"inventory_id": h.ID("roof"), "external_id": "DESK-1"}).Want(http.StatusCreated, "").Text("id")
	elsewhere := h.feedback(object{"external_id": "DESK-2"}).Want(http.StatusCreated, "").Text("id")
	h.Exec(`UPDATE assignments SET node_id = $2 WHERE identity_id = $1`, h.ID("creator"), h.ID("roof"))
	grant("creating", "{feedback.create}")
	for _, test := range []struct {
		name, scopes, grants, want string
	}{
		{"without the permission to read", "{issues:read,issues:write}", "{feedback.create}", ""},
		{"with it and without the scope", "{issues:write}", "{feedback.create,feedback.read}", ""},
		{"with both", "{issues:read,issues:write}", "{feedback.create,feedback.read}", onRoof},
	} {
		t.Run(test.name, func(t *testing.T) {
			scopes(test.scopes)
			grant("creating", test.grants)
			h.ForgetTokens()
			for reference, existing := range map[string]string{"DESK-1": onRoof, "DESK-2": elsewhere} {
				taken := h.As("creator", http.MethodPost, "/issues", object{"inventory_id": h.ID("roof"), "subject": "x", "external_id": reference}).
					Want(http.StatusConflict, "external_id_taken")
				named := taken.Text("existing_id")
				if existing == elsewhere && named != "" || existing == onRoof && named != test.want {
					t.Errorf("%s names %q", reference, named)
				}
				if read := h.As("creator", http.MethodGet, "/issues/"+existing, nil); (read.Status == http.StatusOK) != (named != "") {
					t.Errorf("%s names %q, and reading that gets %d", reference, named, read.Status)
				}
				if _, present := taken.Field().(object)["existing_id"]; present && named == "" {
					t.Error("existing_id is empty")
				}
			}
		})
	}
}

func TestFeedbackExternalIDIsUnique(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.feedback(object{"external_id": "DESK-1"}).Want(http.StatusCreated, "")
	h.feedback(object{"external_id": "DESK-1"}).Want(http.StatusConflict, "external_id_taken")
	h.feedback(object{"external_id": " DESK-1\u00a0"}).Want(http.StatusConflict, "external_id_taken")
	h.As("creator", http.MethodPost, "/issues", object{"inventory_id": h.ID("roof"), "subject": "x", "external_id": "DESK-1"}).
		Want(http.StatusConflict, "external_id_taken")
	h.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at WHERE id = $1`, first.Text("id"))
	h.feedback(object{"external_id": "DESK-1"}).Want(http.StatusConflict, "external_id_taken")
	h.feedback(object{"external_id": "desk-1"}).Want(http.StatusCreated, "")
	h.feedback(nil).Want(http.StatusCreated, "")
	h.feedback(nil).Want(http.StatusCreated, "")
	t.Run("in each organization", func(t *testing.T) {
		h.Exec(`UPDATE integrations SET scopes = '{issues:write}' WHERE id = $1`, h.ID("dispatch"))
		h.Exec(`UPDATE permission_definitions SET grants = '{feedback.create}' WHERE organization_id = $1`, h.Polar.OrganizationID)
		body := object{"inventory_id": h.ID("depot"), "subject": "x", "external_id": "DESK-1"}
		h.As("dispatch", http.MethodPost, "/issues", body).Want(http.StatusCreated, "")
		h.As("dispatch", http.MethodPost, "/issues", body).Want(http.StatusConflict, "external_id_taken")
	})
	want(t, "events for Acme's feedback", servicetest.Value[int](h.Fixture, `SELECT count(*) FROM events WHERE organization_id = $1`, h.Acme.OrganizationID), 4)
}

func TestFeedbackIdempotency(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	create := func(subject string) apitest.Response {
		return h.As("erp", http.MethodPost, "/issues", object{"inventory_id": h.ID("ahu1"), "subject": subject, "external_id": "DESK-1"}, "Idempotency-Key", "key")
	}
	first := create("It squeaks").Want(http.StatusCreated, "")
	h.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at`)
	again := create("It squeaks").Want(http.StatusCreated, "")
	want(t, "the replay", string(again.Body), string(first.Body))
	want(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true")
	want(t, "Location", again.Header.Get("Location"), first.Header.Get("Location"))
	create("It roars").Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
	want(t, "feedback", servicetest.Value[int](h.Fixture, `SELECT count(*) FROM feedback`), 1)
}

func TestConcurrentFeedbackWithOneExternalID(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Token("erp")
	statuses := together(10, func(int) int { return h.feedback(object{"external_id": "DESK-1"}).Status })
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 9 {
		t.Errorf("ten calls get %v, want one 201 and nine 409", statuses)
	}
	want(t, "events", servicetest.Value[int](h.Fixture, `SELECT count(*) FROM events WHERE type = 'issue.created'`), 1)
}

func TestCreatingFeedbackHasAllEffects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`UPDATE webhooks SET events = events || '{issue.created}'`)
	reader := func(scopes, grants string) {
		h.Exec(`UPDATE integrations SET scopes = $2::text[] WHERE id = $1`, h.ID("reader"), scopes)
		h.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, h.ID("reading"), grants)
	}
	deliveries := func(id string) string {
		return h.withKeys(servicetest.Value[string](h.Fixture, `SELECT coalesce(string_agg(DISTINCT i.id, ' ' ORDER BY i.id), '') FROM all_deliveries v
			JOIN webhooks h ON h.id = v.webhook_id JOIN integrations i ON i.id = h.integration_id
			WHERE v.record_id = $1 AND i.id <> $2`, id, h.ID("erp")))
	}
	for _, test := range []struct{ name, scopes, grants, others string }{
		{"the reader lacks the scope", "{work_orders:read}", "{work_orders.read,feedback.read}", ""},
		{"the reader lacks the permission", "{work_orders:read,issues:read}", "{work_orders.read}", ""},
		{"the reader has both", "{work_orders:read,issues:read}", "{feedback.read}", "reader"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader(test.scopes, test.grants)
			id := h.feedback(object{"description": "All day."}).Want(http.StatusCreated, "").Text("id")
			want(t, "other addresses with the event", deliveries(id), test.others)
			want(t, "the event", h.events(id), "issue.created")
			want(t, "the history", h.history(id), "issue.created: description inventory_id status subject")
			want(t, "the Log Records", h.log(id), "ERP (API) issue.created")
			want(t, "the notices: the nearest manager's", h.notices(id), "Ann Field issue.created")
		})
	}
	t.Run("an address that did not subscribe", func(t *testing.T) {
		h.Exec(`UPDATE webhooks SET events = '{issue.resolved}' WHERE integration_id = $1`, h.ID("reader"))
		want(t, "other addresses with the event", deliveries(h.feedback(nil).Text("id")), "")
	})
}

func TestListFeedback(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var ids []string
	for i, node := range []string{"hq", "hvac", "fan1", "roof"} {
		ids = append(ids, h.feedback(object{"inventory_id": h.ID(node), "external_id": fmt.Sprint("DESK-", i)}).Want(http.StatusCreated, "").Text("id"))
		h.Clock.Advance(time.Second)
	}
	h.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at WHERE id = $1`, ids[1])
	h.Exec(`UPDATE integrations SET scopes = '{issues:read}' WHERE id = $1`, h.ID("reader"))
	h.Exec(`UPDATE permission_definitions SET grants = '{feedback.read}' WHERE id = $1`, h.ID("reading"))
	for _, test := range []struct{ name, as, query, found string }{
		{"all, newest first", "erp", "", "3210"},
		{"open ones", "erp", "?status=open", "320"},
		{"resolved ones", "erp", "?status=resolved", "1"},
		{"both", "erp", "?status=open,resolved", "3210"},
		{"of a node with everything below", "erp", "?inventory_id=" + h.ID("hvac"), "21"},
		{"of the lowest node", "erp", "?inventory_id=" + h.ID("fan1"), "2"},
		{"of an unknown node", "erp", "?inventory_id=loc_00000000000000000000000000", ""},
		{"by their reference", "erp", "?external_id=DESK-2", "2"},
		{"by an unknown reference", "erp", "?external_id=DESK", ""},
		{"by all filters together", "erp", "?external_id=DESK-2&status=open&inventory_id=" + h.ID("hvac"), "2"},
		{"by contradicting filters", "erp", "?external_id=DESK-2&status=resolved", ""},
		{"those the reader may read", "reader", "", "21"},
		{"the first two", "erp", "?limit=2", "32"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := ""
			for _, record := range h.As(test.as, http.MethodGet, "/issues"+test.query, nil).Want(http.StatusOK, "").Field("data").([]any) {
				for i, id := range ids {
					if record.(object)["id"] == id {
						found += fmt.Sprint(i)
					}
				}
			}
			want(t, "found", found, test.found)
		})
	}
	h.As("erp", http.MethodGet, "/issues?status=closed", nil).Want(http.StatusBadRequest, "invalid_request")
	h.As("erp", http.MethodGet, "/issues?assignee_id="+h.ID("bob"), nil).Want(http.StatusBadRequest, "invalid_request")
}
