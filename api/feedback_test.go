package api_test

import (
	"fmt"
	"net/http"
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
	response := h.feedback(nil).Want(http.StatusCreated, "")
	for field, value := range (object{
		"organization_id": h.Acme.OrganizationID, "inventory_id": h.ID("ahu1"), "subject": "It squeaks", "description": nil, "external_id": nil,
		"created_by": h.ID("erp"), "created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z", "resolved_at": nil,
	}) {
		want(t, field, response.Field(field), value)
	}
	want(t, "the status", fmt.Sprint(response.Field("status")), "map[code:open name:Open]")
	want(t, "Location", response.Header.Get("Location"), "/v1/issues/"+response.Text("id"))
	read := h.As("erp", http.MethodGet, "/issues/"+response.Text("id"), nil).Want(http.StatusOK, "")
	want(t, "the ETag", read.Header.Get("ETag"), response.Header.Get("ETag"))
}

// existing_id is there if, and only if, a read of that feedback by the same token would
// succeed.
func TestExternalIDTakenNamesReadableFeedback(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	onRoof := h.feedback(object{"inventory_id": h.ID("roof"), "external_id": "DESK-1"}).Want(http.StatusCreated, "").Text("id")
	elsewhere := h.feedback(object{"external_id": "DESK-2"}).Want(http.StatusCreated, "").Text("id")
	h.Exec(`UPDATE assignments SET node_id = $2 WHERE identity_id = $1`, h.ID("creator"), h.ID("roof"))
	for _, test := range []struct {
		name, scopes, grants, want string
	}{
		{"without the permission to read", "{issues:read,issues:write}", "{feedback.create}", ""},
		{"with it and without the scope", "{issues:write}", "{feedback.create,feedback.read}", ""},
		{"with both", "{issues:read,issues:write}", "{feedback.create,feedback.read}", onRoof},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.Exec(`UPDATE integrations SET scopes = $2::text[] WHERE id = $1`, h.ID("creator"), test.scopes)
			h.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, h.ID("creating"), test.grants)
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
	h.feedback(object{"external_id": "DESK-1"}).Want(http.StatusCreated, "")
	h.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = changed_at`)
	for _, taken := range []string{"DESK-1", " DESK-1\u00a0"} {
		h.feedback(object{"external_id": taken}).Want(http.StatusConflict, "external_id_taken")
	}
	h.feedback(object{"external_id": "desk-1"}).Want(http.StatusCreated, "")
	h.Exec(`UPDATE integrations SET scopes = '{issues:write}' WHERE id = $1`, h.ID("dispatch"))
	h.Exec(`UPDATE permission_definitions SET grants = '{feedback.create}' WHERE organization_id = $1`, h.Polar.OrganizationID)
	body := object{"inventory_id": h.ID("depot"), "subject": "x", "external_id": "DESK-1"}
	h.As("dispatch", http.MethodPost, "/issues", body).Want(http.StatusCreated, "") // another organization's
}

// Addresses get feedback whose integration may read it, by scope and by permission, if they subscribe to it.
func TestAddressesGetReadableFeedback(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name, scopes, grants, events string
		deliveries                   int
	}{
		{"without the scope", "{work_orders:read}", "{work_orders.read,feedback.read}", "{issue.created}", 0},
		{"without the permission", "{work_orders:read,issues:read}", "{work_orders.read}", "{issue.created}", 0},
		{"with both", "{work_orders:read,issues:read}", "{feedback.read}", "{issue.created}", 1},
		{"subscribed to another type", "{issues:read}", "{feedback.read}", "{issue.resolved}", 0},
	} {
		h.Exec(`UPDATE integrations SET scopes = $2::text[] WHERE id = $1`, h.ID("reader"), test.scopes)
		h.Exec(`UPDATE permission_definitions SET grants = $2::text[] WHERE id = $1`, h.ID("reading"), test.grants)
		h.Exec(`UPDATE webhooks SET events = $2::text[] WHERE id = $1`, h.ID("reader_hook"), test.events)
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		const deliveries = `SELECT count(*) FROM all_deliveries WHERE record_id = $1 AND webhook_id = $2`
		want(t, test.name, servicetest.Value[int](h.Fixture, deliveries, id, h.ID("reader_hook")), test.deliveries)
	}
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
	for _, test := range []struct{ name, query, found string }{
		{"open ones", "?status=open", "320"},
		{"resolved ones", "?status=resolved", "1"},
		{"of a node with everything below", "?inventory_id=" + h.ID("hvac"), "21"},
		{"of an unknown node", "?inventory_id=loc_00000000000000000000000000", ""},
		{"by their reference", "?external_id=DESK-2", "2"},
	} {
		want(t, test.name, h.listed("/issues"+test.query, ids), test.found)
	}
	h.As("erp", http.MethodGet, "/issues?status=closed", nil).Want(http.StatusBadRequest, "invalid_request")
	h.As("erp", http.MethodGet, "/issues?assignee_id="+h.ID("bob"), nil).Want(http.StatusBadRequest, "invalid_request")
}
