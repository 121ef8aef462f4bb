package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/api/apitest"
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

// log returns a record's Log Records and history, one per line: the actor and the action.
func (h harness) log(id string) string {
	return servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(coalesce(actor_name, 'someone') || ' ' || action, E'\n' ORDER BY id), '') FROM log WHERE record_id = $1`, id)
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
	want(t, "the record", string(h.read(id).Body), string(before.Body))
	want(t, "the effects", h.events(id)+h.log(id)+h.notices(id), "")
}

// list reads a list as erp. parameters are passed to query.
func (h harness) list(path string, parameters ...string) apitest.Response {
	return h.As("erp", http.MethodGet, path+query(parameters...), nil)
}

// listed returns the records of a list by their places among the ids.
func (h harness) listed(path string, ids []string) string {
	found := ""
	for _, record := range h.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "").Field("data").([]any) {
		found += fmt.Sprint(slices.Index(ids, record.(object)["id"].(string)))
	}
	return found
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

// wantChanges compares the ids of all changes of a list since a time or sync token. It returns the last sync token.
func (h harness) wantChanges(t *testing.T, what, path, since, limit string, ids ...string) (token string) {
	t.Helper()
	got, token := h.followChanges(t, path, since, limit)
	wantList(t, what, got, ids)
	return token
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
	want(t, "has_more", page.Field("has_more").(bool), page.Text("next_cursor") != "")
	if _, named := page.Field().(object)["next_cursor"]; named && page.Text("next_cursor") == "" {
		t.Error("the last page names next_cursor")
	}
	want(t, "the page has a sync token", page.Text("sync_token") != "", changes)
	return ids
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantList[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
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
