package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// objects runs a command that prints a JSON array of objects.
func (h harness) objects(args ...string) []map[string]any {
	h.t.Helper()
	list := h.json(args...).([]any)
	all := make([]map[string]any, len(list))
	for i, value := range list {
		all[i] = value.(map[string]any)
	}
	return all
}

// member returns a member of each object.
func member(list []map[string]any, name string) (values []any) {
	for _, o := range list {
		values = append(values, o[name])
	}
	return values
}

// wantMembers checks the names of an object's members.
func wantMembers(t *testing.T, o map[string]any, names string) {
	t.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(o)), " "); got != names {
		t.Errorf("the members are %s, want %s", got, names)
	}
}

// table runs a command and returns the lines of its table. Nothing in it controls the terminal.
func (h harness) table(args ...string) []string {
	h.t.Helper()
	out, err := h.run(args...)
	if err != nil || strings.ContainsAny(out, "\t\x1b") {
		h.t.Errorf("%v: %v\n%q", args, err, out)
	}
	return strings.Split(strings.TrimRight(out, "\n"), "\n")
}

func (h harness) workOrder(by, node, title string) string {
	h.t.Helper()
	created, err := h.Records.CreateWorkOrder(h.t.Context(), h.Actor(by), store.NoKey, records.NewWorkOrder{
		InventoryID: h.ID(node), Title: title, Assignees: []string{h.ID(by)}, ExternalID: new("ext-" + title),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Clock.Advance(time.Second)
	return created.RecordID
}

func TestOrganizationsList(t *testing.T) {
	h := newHarness(t)
	list := h.objects("organizations", "list")
	if len(list) != 2 {
		t.Fatalf("listed are %v", list)
	}
	wantMembers(t, list[0], "created_at id key name openid_required plan read_only suspended")
	wantMembers(t, list[0]["plan"].(map[string]any), "api calls_per_minute integrations manual_work_orders name")
	polar := list[slices.Index(member(list, "key"), any("polar"))]
	if polar["id"] != h.Polar.OrganizationID || polar["name"] != "Polar Lifts" || polar["plan"].(map[string]any)["calls_per_minute"] != 100.0 {
		t.Errorf("polar is listed as %v", polar)
	}
	h.Exec(`UPDATE organizations SET suspended = true, read_only = true WHERE key = 'polar'`)
	h.Exec(`UPDATE identities SET name = E'Polar\x1b[2J' || repeat('x', 150) WHERE id = $1`, h.Polar.OrganizationID)
	lines := h.table("organizations", "list")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(strings.Join(lines, "\n"), "suspended, read-only") {
		t.Errorf("the table is %q", lines)
	}
	for _, line := range lines {
		if len([]rune(line)) > 150 {
			t.Errorf("a line is %d characters long", len([]rune(line)))
		}
	}
}

func TestWorkOrdersListAndShow(t *testing.T) {
	h := newHarness(t)
	first, second := h.workOrder("erp", "ahu1", "Replace\tfilter"), h.workOrder("roofer", "roof", "Paint it")
	if _, err := h.Records.CancelWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, first, new("Not needed")); err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string][]any{
		"--organization acme":                              {second, first},
		"--organization " + h.Acme.OrganizationID:          {second, first},
		"--organization acme --status open":                {second},
		"--organization acme --status open,cancelled":      {second, first},
		"--organization acme --external-id 'ext-Paint it'": {second},
		"--organization acme --assignee " + h.ID("erp"):    {first},
		"--organization acme --limit 1":                    {second},
		"--as ANN@acme.example.com":                        {second, first},
		"--as " + h.ID("zed"):                              nil,
	} {
		if got := member(h.objects(words("work-orders list "+filter)...), "id"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	if out, err := h.run("work-orders", "list", "--organization", "polar", "--json"); err != nil || out != "[]\n" {
		t.Errorf("an empty list is %q, %v", out, err)
	}
	lines := h.table("work-orders", "list", "--organization", "acme")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") || !strings.HasPrefix(lines[1], second) || !strings.Contains(lines[2], "cancelled") || !strings.Contains(lines[2], "Replace�filter") {
		t.Errorf("the table is %q", lines)
	}

	// The operator sees ids, a person the people as well: the record as GET shows it.
	shown := h.json("work-orders", "show", first).(map[string]any)
	asAnn := h.json("work-orders", "show", first, "--as", h.ID("ann")).(map[string]any)
	if shown["id"] != first || shown["cancel_reason"] != "Not needed" || shown["people"] != nil || asAnn["people"] == nil {
		t.Errorf("shown are %v and %v", shown, asAnn)
	}
	text := strings.Join(h.table("work-orders", "show", first, "--as", h.ID("ann")), "\n")
	for _, words := range []string{"Cancelled", "Not needed", "Headquarters › HVAC › AHU 1 (" + h.ID("ahu1") + ")", "ERP (" + h.ID("erp") + ")"} {
		if !strings.Contains(text, words) {
			t.Errorf("for people, %q is missing in\n%s", words, text)
		}
	}
	h.reject(map[string]string{
		"work-orders show wo_00000000000000000000000000":     "there is no work order wo_00000000000000000000000000",
		"work-orders show " + first + " --as " + h.ID("zed"): "there is no work order " + first + " that the person may read",
		"work-orders list --organization nemo":               "there is no organization nemo",
		"work-orders list --as nemo@acme.example.com":        "--as: there is no person",
	})
	// Usage would hide such an error.
	if out, err := h.run("work-orders", "show", "wo_x"); err == nil || err.Error() != "there is no work order wo_x" || out != "" {
		t.Errorf("it prints %q and says %v", out, err)
	}
}

// A list that is longer than a page of the service is read page by page.
func TestListsOfSeveralPages(t *testing.T) {
	h := newHarness(t)
	const many = 450
	h.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, $4) n`,
		h.Acme.OrganizationID, h.ID("ahu1"), h.ID("ann"), many)
	for limit, want := range map[string]int{"50": 50, "200": 200, "401": 401} {
		all := member(h.objects("work-orders", "list", "--organization", "acme", "--limit", limit), "id")
		for i, id := range all {
			if id != fmt.Sprintf("wo_%026d", many-i) {
				t.Fatalf("%s: place %d is %v", limit, i, id)
			}
		}
		if len(all) != want {
			t.Errorf("%d of %s", len(all), limit)
		}
	}
}

func TestIssuesListAndShow(t *testing.T) {
	h := newHarness(t)
	create := func(node, subject string) string {
		created, err := h.Records.CreateFeedback(t.Context(), h.Actor("erp"), store.NoKey, records.NewFeedback{
			InventoryID: h.ID(node), Subject: subject, Description: new("Line one\nline two"), ExternalID: new("desk-" + subject),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Clock.Advance(time.Second)
		return created.RecordID
	}
	first, second := create("ahu1", "It rattles"), create("roof", "It leaks")
	ann, err := h.Access.PersonActor(t.Context(), h.ID("ann"))
	if err == nil {
		_, err = h.Records.ResolveFeedback(t.Context(), ann, store.NoKey, first)
	}
	if err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string][]any{
		"--organization acme":                               {second, first},
		"--organization acme --status resolved":             {first},
		"--organization acme --external-id 'desk-It leaks'": {second},
		"--as " + h.ID("bob"):                               nil,
		"--organization polar":                              nil,
	} {
		if got := member(h.objects(words("issues list "+filter)...), "id"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	if lines := h.table("issues", "list", "--organization", "acme"); len(lines) != 3 || !strings.Contains(lines[2], "resolved") {
		t.Errorf("the table is %q", lines)
	}
	if shown := h.json("issues", "show", first).(map[string]any); shown["id"] != first || shown["resolved_at"] == nil || shown["people"] != nil {
		t.Errorf("shown is %v", shown)
	}
	if text := strings.Join(h.table("issues", "show", second), "\n"); !strings.Contains(text, "It leaks") || !strings.Contains(text, "line two") {
		t.Errorf("for people:\n%s", text)
	}
	h.reject(map[string]string{
		"issues show " + first + " --as " + h.ID("bob"): "there is no feedback " + first + " that the person may read",
		"issues show iss_x":                             "there is no feedback iss_x",
	})
}

func TestLogList(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder("erp", "ahu1", "Replace filter")
	if _, err := h.Integrations.TurnIntegrationOff(t.Context(), store.Operator(), store.NoKey, h.ID("reader")); err != nil {
		t.Fatal(err)
	}
	list := h.objects("log", "list", "--organization", "acme")
	if len(list) < 2 || list[0]["action"] != "integration.turned_off" || list[0]["actor_id"] != nil || list[0]["actor_name"] != "Millwright" ||
		list[1]["actor_name"] != "erp (API)" || list[1]["record_id"] != id {
		t.Fatalf("the log is %v", list)
	}
	wantMembers(t, list[0], "action actor_id actor_name actor_now created_at id record_id record_name")
	for filter, want := range map[string]string{
		"--record " + id:       "work_order.created",
		"--action integration": "integration.turned_off",
		"--since " + models.TimeOf(h.Clock.Now()).String(): "integration.turned_off",
	} {
		if got := member(h.objects(words("log list --organization acme "+filter)...), "action"); !slices.Equal(got, []any{want}) {
			t.Errorf("%s: %v, want %s", filter, got, want)
		}
	}
	if got := h.objects("log", "list", "--as", "ann@acme.example.com"); len(got) != len(list) {
		t.Errorf("an administrator sees %d, want %d", len(got), len(list))
	}
	if got := h.objects("log", "list", "--organization", "polar", "--record", id); len(got) != 0 {
		t.Errorf("another organization's log has %v", got)
	}
	if lines := h.table("log", "list", "--organization", "acme"); !strings.HasPrefix(lines[0], "TIME ") || !strings.Contains(lines[2], "erp (API)") {
		t.Errorf("the table is %q", lines)
	}
	h.reject(map[string]string{
		"log list --as bob@acme.example.com":            "requires the Log Records permission",
		"log list --organization nemo":                  "there is no organization nemo",
		"log list --organization acme --since now":      `"now" is neither`,
		"log list --organization acme --action eaten.x": `--action: there is no action "eaten.x"; choose from work_order, issue, integration, webhook, delivery, assignment, person, team`,
	})
}

func TestNoticesList(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder("erp", "ahu1", "Replace filter")
	for _, people := range [][]string{{h.ID("bob")}, {h.ID("crew")}} {
		if _, err := h.Records.AssignWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id, people, nil); err != nil {
			t.Fatal(err)
		}
	}
	list := h.objects("notices", "list", "--as", "bob@acme.example.com")
	if len(list) != 2 || list[0]["kind"] != "work_order.assigned" || list[0]["record_id"] != id || list[0]["title"] != "Replace filter" || list[0]["read_at"] != nil {
		t.Fatalf("bob's notices are %v", list)
	}
	wantMembers(t, list[0], "about created_at id kind number read_at readable record_id title")
	h.Exec(`UPDATE notices SET read_at = now() WHERE id = (SELECT max(id) FROM notices WHERE person_id = $1)`, h.ID("bob"))
	if got := h.objects("notices", "list", "--as", h.ID("bob"), "--read"); len(got) != 1 || got[0]["id"] != list[0]["id"] {
		t.Errorf("read are %v", got)
	}
	if lines := h.table("notices", "list", "--as", h.ID("bob")); len(lines) != 2 || !strings.HasPrefix(lines[0], "TIME ") || !strings.Contains(lines[1], "work_order.assigned") {
		t.Errorf("the table is %q", lines)
	}
	if out, err := h.run("notices", "list", "--as", h.ID("zed"), "--json"); err != nil || out != "[]\n" {
		t.Errorf("an empty inbox is %q, %v", out, err)
	}
}

func TestWebhooksListIsNarrow(t *testing.T) {
	h := newHarness(t)
	h.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, last_at, last_status) VALUES ($1, '2026-03-01T08:00:00Z', '2026-03-01T09:00:00Z', 503)
		ON CONFLICT (webhook_id) DO UPDATE SET failing_since = excluded.failing_since, last_at = excluded.last_at, last_status = excluded.last_status`, h.ID("erp_hook"))
	if _, err := h.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, h.ID("reader_hook"), "It\tmoves."); err != nil {
		t.Fatal(err)
	}
	lines := h.table("webhooks", "list", "--integration", h.ID("erp"))
	if want := h.ID("erp_hook") + "  failing  2026-03-01T08:00:00.000Z  http://127.0.0.1:9/erp"; len(lines) != 2 || lines[1] != want {
		t.Errorf("the table is %q, want %q", lines, want)
	}
	text := strings.Join(h.table("webhooks", "list"), "\n")
	if !strings.Contains(text, h.ID("reader_hook")+"  off ") || !strings.Contains(text, h.ID("reader_updates")+"  on       -") {
		t.Errorf("the table is\n%s", text)
	}
	shown := h.json("webhooks", "show", h.ID("erp_hook")).(map[string]any)
	for _, one := range []map[string]any{shown, h.objects("webhooks", "list")[0]} {
		wantMembers(t, one, "enabled events failing_since held_reason id integration_id last_at last_error last_status last_success_at off_at off_reason url waits_until")
	}
	if shown["failing_since"] != "2026-03-01T08:00:00.000Z" || shown["last_status"] != 503.0 {
		t.Errorf("shown is %v", shown)
	}
	h.Exec(`UPDATE webhook_health SET waits_until = '2026-03-01T09:01:00Z'`)
	if text := strings.Join(h.table("webhooks", "show", h.ID("erp_hook")), "\n"); !strings.Contains(text, "the oldest is tried at 2026-03-01T09:01:00.000Z") {
		t.Errorf("for people:\n%s", text)
	}
	if text := strings.Join(h.table("webhooks", "show", h.ID("reader_hook")), "\n"); !strings.Contains(text, "It�moves.") || !strings.Contains(text, h.ID("reader")) {
		t.Errorf("for people:\n%s", text)
	}
	h.reject(map[string]string{"webhooks show whk_x": "there is no webhook address whk_x"})
	h.Exec(`DELETE FROM webhook_health`)
	if servicetest.Value[int](h.Fixture, `SELECT count(*) FROM webhooks`) != len(h.objects("webhooks", "list")) {
		t.Error("an address without health is not listed")
	}
}
