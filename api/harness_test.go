package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
)

// object is a JSON object.
type object = map[string]any

// harness is a server with helpers that make changes and read their effects. The
// effects of a change are its events, history, Log Records and notices.
type harness struct{ *apitest.Server }

func newHarness(t *testing.T) harness {
	t.Helper()
	return harness{apitest.New(t)}
}

// workOrder creates a work order as erp, which is its worker, and deletes the
// effects of the creation. fields are added to the default ones or replace them.
func (h harness) workOrder(fields object) string {
	body := object{"inventory_id": h.ID("ahu1"), "title": "Replace filter", "assignees": h.ids("erp")}
	maps.Copy(body, fields)
	id := h.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusCreated, "").Text("id")
	h.forgetEffects(id)
	return id
}

// forgetEffects deletes the effects of a record's changes so far.
func (h harness) forgetEffects(id string) {
	for _, table := range []string{"events", "log", "notices"} {
		h.Exec(`DELETE FROM `+table+` WHERE record_id = $1`, id)
	}
}

// setStatus sets the status of a work order, as the console would.
func (h harness) setStatus(id string, status models.WorkOrderStatus) {
	h.Exec(`UPDATE work_orders SET status = $2::text,
		completed_at = CASE WHEN $2 = 'complete' THEN changed_at END,
		cancelled_at = CASE WHEN $2 = 'cancelled' THEN changed_at END WHERE id = $1`, id, status)
}

// ids returns the ids of the fixture's keys.
func (h harness) ids(keys ...string) []string {
	ids := []string{}
	for _, key := range keys {
		ids = append(ids, h.ID(key))
	}
	return ids
}

// withKeys replaces the ids in a string by the fixture's keys.
func (h harness) withKeys(text string) string {
	var pairs []string
	for _, imported := range []map[string]string{h.Acme.IDs, h.Polar.IDs} {
		for key, id := range imported {
			pairs = append(pairs, id, key)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// events returns a record's events in the order of erp's deliveries, one per line:
// the type and the fields that it adds to data.
func (h harness) events(id string) string {
	return h.withKeys(servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(e.type || CASE e.data WHEN '{}' THEN '' ELSE ' ' || e.data::text END, E'\n' ORDER BY v.id), '')
		FROM events e JOIN all_deliveries v ON v.event_id = e.id AND v.webhook_id = $2 WHERE e.record_id = $1`, id, h.ID("erp_hook")))
}

// history returns a record's history, one change per line: the action and the names of its fields.
func (h harness) history(id string) string {
	text := h.withKeys(servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(h.action || ':' || (SELECT coalesce(string_agg(' ' || k, ''), '')
			FROM jsonb_object_keys(h.changes) k), E'\n' ORDER BY h.id), '') FROM history h WHERE h.record_id = $1`, id))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		action, names, _ := strings.Cut(line, ": ")
		if names != "" {
			lines[i] = action + ": " + strings.Join(slices.Sorted(slices.Values(strings.Fields(names))), " ")
		}
	}
	return strings.Join(lines, "\n")
}

// log returns a record's Log Records, one per line: the actor and the action.
func (h harness) log(id string) string {
	return servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(actor_name || ' ' || action, E'\n' ORDER BY id), '') FROM log_records WHERE record_id = $1`, id)
}

// notices returns a record's notices, one per line: the person and the kind.
func (h harness) notices(id string) string {
	return servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(i.name || ' ' || n.kind, E'\n' ORDER BY i.name, n.kind), '')
		FROM notices n JOIN identities i ON i.id = n.person_id WHERE n.record_id = $1`, id)
}

func (h harness) read(id string) apitest.Response {
	return h.As("erp", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, "")
}

// wantUnchanged fails unless the record is as it was read before, without new effects.
func (h harness) wantUnchanged(t *testing.T, id string, before apitest.Response) {
	t.Helper()
	if after := h.read(id); string(after.Body) != string(before.Body) {
		t.Errorf("the record has changed:\n%s\n%s", before.Body, after.Body)
	}
	if effects := h.events(id) + h.history(id) + h.log(id) + h.notices(id); effects != "" {
		t.Errorf("unexpected effects: %s", effects)
	}
}

// list reads a list as erp. parameters are passed to query.
func (h harness) list(path string, parameters ...string) apitest.Response {
	return h.As("erp", http.MethodGet, path+query(parameters...), nil)
}

// followChanges reads all changes of a list since a time or sync token, page by
// page, and returns their ids and the last sync token.
func (h harness) followChanges(t *testing.T, path, since string, limit string) (ids []string, token string) {
	t.Helper()
	h.WaitForOpenTransactions()
	for cursor := ""; ; {
		page := h.list(path, "changed_since", since, "limit", limit, "cursor", cursor)
		ids = append(ids, idsOf(t, page, true)...)
		if cursor = page.Text("next_cursor"); cursor == "" {
			return ids, page.Text("sync_token")
		}
	}
}

// query encodes parameters, which are pairs of name and value. Empty values are omitted.
func query(parameters ...string) string {
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			values.Set(parameters[i], parameters[i+1])
		}
	}
	return "?" + values.Encode()
}

// idsOf returns the ids of a page's records and checks what every page must have.
func idsOf(t *testing.T, page apitest.Response, changes bool) []string {
	t.Helper()
	page.Want(http.StatusOK, "")
	ids := []string{}
	for _, record := range page.Field("data").([]any) {
		ids = append(ids, record.(object)["id"].(string))
	}
	if more := page.Field("has_more").(bool); more != (page.Text("next_cursor") != "") {
		t.Errorf("has_more is %t, next_cursor is %v", more, page.Field("next_cursor"))
	}
	if _, named := page.Field().(object)["next_cursor"]; named && page.Text("next_cursor") == "" {
		t.Error("the last page names next_cursor")
	}
	if changes != (page.Text("sync_token") != "") {
		t.Errorf("sync_token is %v, with changed_since: %t", page.Field("sync_token"), changes)
	}
	return ids
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// with returns the fields of all objects; later ones replace earlier ones.
func with(first object, others ...object) object {
	merged := maps.Clone(first)
	for _, other := range others {
		maps.Copy(merged, other)
	}
	return merged
}

// together makes n concurrent calls and counts their results.
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

// wantAllowedStatuses checks that an operation is allowed only in these statuses. In
// others it must break the rule status and have no effect.
func (h harness) wantAllowedStatuses(t *testing.T, allowed []models.WorkOrderStatus, do func(id string) apitest.Response) {
	t.Helper()
	for _, status := range models.WorkOrderStatuses {
		t.Run(string(status), func(t *testing.T) {
			id := h.workOrder(nil)
			h.setStatus(id, status)
			before := h.read(id)
			response := do(id)
			if slices.Contains(allowed, status) {
				response.Want(http.StatusOK, "")
				return
			}
			response.Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", response.Text("rule"), "status")
			h.wantUnchanged(t, id, before)
		})
	}
}

// wantAccess checks that a change requires reading the work order and the grant on
// its node.
func (h harness) wantAccess(t *testing.T, grant string, do func(as, id string) apitest.Response) {
	t.Helper()
	all := []string{
		"inventory.read", "work_orders.read", "work_orders.create", "work_orders.update", "work_orders.delete",
		"work_orders.forward", "feedback.read", "feedback.create", "feedback.resolve",
	}
	grants := func(names []string) {
		h.Exec(`UPDATE permission_definitions SET grants = $2 WHERE id = $1`, h.ID("full"), names)
	}
	id := h.workOrder(object{"inventory_id": h.ID("roof"), "assignees": h.ids("erp", "crew")})
	own := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("roof"), "title": "x", "assignees": h.ids("crew", "bob")}).
		Want(http.StatusCreated, "").Text("id")
	before := h.read(id)
	t.Run("may read, lacks the scope", func(t *testing.T) {
		h.Exec(`UPDATE integrations SET scopes = '{work_orders:read}' WHERE id = $1`, h.ID("roofer"))
		do("roofer", id).Want(http.StatusForbidden, "insufficient_scope")
		h.Exec(`UPDATE integrations SET scopes = '{work_orders:read,work_orders:write}' WHERE id = $1`, h.ID("roofer"))
		h.ForgetTokens()
	})
	t.Run("may read by its node, lacks the permission", func(t *testing.T) {
		do("roofer", id).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("created it, lacks the permission", func(t *testing.T) {
		do("creator", own).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("may not read it", func(t *testing.T) {
		do("outsider", id).Want(http.StatusNotFound, "not_found")
	})
	t.Run("an unknown work order", func(t *testing.T) {
		do("erp", "wo_00000000000000000000000000").Want(http.StatusNotFound, "not_found")
		do("erp", "nonsense").Want(http.StatusNotFound, "not_found")
		do("erp", h.ID("ahu1")).Want(http.StatusNotFound, "not_found")
	})
	t.Run("has every permission but this", func(t *testing.T) {
		grants(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == grant }))
		do("erp", id).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("read-only organization", func(t *testing.T) {
		grants(all)
		h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
		do("erp", id).Want(http.StatusForbidden, "read_only")
		do("outsider", id).Want(http.StatusNotFound, "not_found")
		h.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
	})
	t.Run("none of these left anything", func(t *testing.T) { h.wantUnchanged(t, id, before) })
	t.Run("may read and has this permission", func(t *testing.T) {
		grants([]string{"work_orders.read", grant})
		do("erp", id).Want(http.StatusOK, "")
	})
}
