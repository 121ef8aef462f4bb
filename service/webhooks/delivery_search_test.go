package webhooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// found are the deliveries of all pages of a search.
func found(t *testing.T, f *servicetest.Harness, search webhooks.DeliverySearch, limit int) (all []webhooks.DeliveryItem, pages int) {
	t.Helper()
	next := ""
	for {
		page, err := f.Webhooks.SearchDeliveries(t.Context(), f.As("ann"), search, next, limit)
		servicetest.Must(t, err)
		all, pages = append(all, page.Deliveries...), pages+1
		if next = page.Next; next == "" {
			return all, pages
		}
		if pages > 100 {
			t.Fatal("the search does not end")
		}
	}
}

// planted is a harness with deliveries of each status at the ERP's address.
func planted(t *testing.T) (f *servicetest.Harness, record string) {
	t.Helper()
	f = servicetest.NewHarness(t)
	record = servicetest.Create(t, f.Fixture)
	f.SetDeliveries(models.DeliveryDelivered, `true`)
	f.Exec(`DELETE FROM deliveries`)
	hour := servicetest.Start.Add(-10 * time.Hour)
	for i, status := range []models.DeliveryStatus{
		models.DeliveryDelivered, models.DeliveryFailed, models.DeliveryHeld, models.DeliverySkipped, models.DeliveryRetrying, models.DeliveryPending,
	} {
		response := map[models.DeliveryStatus]int{models.DeliveryDelivered: 204, models.DeliveryFailed: 500}[status]
		f.PlantDeliveries("erp_hook", record, models.AllEventTypes[i], status, response, 10, hour.Add(time.Duration(i)*time.Hour))
	}
	return f, record
}

func TestDeliveriesAreFoundByEachFilter(t *testing.T) {
	t.Run("two addresses", func(t *testing.T) { testFilters(t, 0) })
	t.Run("many addresses", func(t *testing.T) { testFilters(t, 12) })
}

// testFilters searches the deliveries of two addresses, most of which are spread over others.
func testFilters(t *testing.T, others int) {
	f, record := planted(t)
	f.PlantDeliveries("reader_hook", record, models.EventWorkOrderCreated, models.DeliveryFailed, 404, 3, servicetest.Start.Add(-time.Hour))
	change := servicetest.Create(t, f.Fixture) // two events: to erp_hook and reader_hook
	ofAddress, ofReader := 61, 4
	if others > 0 {
		ofAddress, ofReader = 1, 1
		f.AddAddresses(others)
		f.Exec(`UPDATE deliveries d SET webhook_id = (SELECT id FROM webhooks WHERE url LIKE '%/other/' || ascii(right(d.id, 1)) % $1)`, others)
		f.Exec(`UPDATE open_deliveries d SET webhook_id = (SELECT id FROM webhooks WHERE url LIKE '%/other/' || ascii(right(d.id, 1)) % $1) WHERE record_id = $2`, others, record)
	}
	for name, tt := range map[string]struct {
		search webhooks.DeliverySearch
		want   int
	}{
		"all":              {webhooks.DeliverySearch{}, 65},
		"an address":       {webhooks.DeliverySearch{WebhookID: f.ID("erp_hook")}, ofAddress},
		"delivered":        {webhooks.DeliverySearch{Status: models.DeliveryDelivered}, 10},
		"failed":           {webhooks.DeliverySearch{Status: models.DeliveryFailed}, 13},
		"held":             {webhooks.DeliverySearch{Status: models.DeliveryHeld}, 10},
		"skipped":          {webhooks.DeliverySearch{Status: models.DeliverySkipped}, 10},
		"retrying":         {webhooks.DeliverySearch{Status: models.DeliveryRetrying}, 10},
		"pending":          {webhooks.DeliverySearch{Status: models.DeliveryPending}, 12},
		"a type":           {webhooks.DeliverySearch{Type: models.EventWorkOrderStatusChanged}, 10},
		"2xx":              {webhooks.DeliverySearch{Response: "2xx"}, 10},
		"5xx":              {webhooks.DeliverySearch{Response: "5xx"}, 10},
		"4xx failed":       {webhooks.DeliverySearch{Response: "4xx", Status: models.DeliveryFailed}, 3},
		"no response":      {webhooks.DeliverySearch{Response: webhooks.ResponseNone}, 20},
		"a time":           {webhooks.DeliverySearch{From: servicetest.Start.Add(-9*time.Hour + 5*time.Second), To: servicetest.Start.Add(-8 * time.Hour)}, 5},
		"before a time":    {webhooks.DeliverySearch{To: servicetest.Start.Add(-9 * time.Hour)}, 10},
		"since a time":     {webhooks.DeliverySearch{From: servicetest.Start.Add(-time.Hour)}, 5},
		"an integration":   {webhooks.DeliverySearch{IntegrationID: f.ID("reader")}, ofReader},
		"its address":      {webhooks.DeliverySearch{IntegrationID: f.ID("reader"), WebhookID: f.ID("reader_hook")}, ofReader},
		"another's":        {webhooks.DeliverySearch{IntegrationID: f.ID("reader"), WebhookID: f.ID("erp_hook")}, 0},
		"no address":       {webhooks.DeliverySearch{IntegrationID: f.ID("outsider")}, 0},
		"a record":         {webhooks.DeliverySearch{RecordID: change}, 2},
		"a record, failed": {webhooks.DeliverySearch{RecordID: change, Status: models.DeliveryFailed}, 0},
		"another record":   {webhooks.DeliverySearch{RecordID: "wo_00000000000000000000000000"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			all, pages := found(t, f, tt.search, 4)
			if len(all) != tt.want || pages > (tt.want+3)/4+1 {
				t.Errorf("%d deliveries are found on %d pages, want %d", len(all), pages, tt.want)
			}
			seen := map[string]bool{}
			for i, d := range all {
				if seen[d.ID] || i > 0 && d.CreatedAt.Time.After(all[i-1].CreatedAt.Time) {
					t.Errorf("%s is there twice or not in order", d.ID)
				}
				seen[d.ID] = true
				if d.URL == "" || d.Integration == "" || d.RecordID == "" || d.Attempts > 0 && d.LatencyMS == nil {
					t.Errorf("%+v is not complete", d)
				}
			}
		})
	}
}

// A search for few among many looks through a part of them at a time, and reports its progress.
func TestASparseSearchIsBounded(t *testing.T) {
	f, record := planted(t)
	f.Exec(`DELETE FROM webhooks WHERE id <> $1`, f.ID("erp_hook"))
	f.PlantDeliveries("erp_hook", record, models.EventIssueCreated, models.DeliveryDelivered, 200, 20_000, servicetest.Start.Add(-8*time.Hour))
	search := webhooks.DeliverySearch{Response: "5xx"}
	page, err := f.Webhooks.SearchDeliveries(t.Context(), f.As("ann"), search, "", 20)
	if err != nil || len(page.Deliveries) != 0 || page.SearchedTo == nil || page.Next == "" {
		t.Fatalf("the first page is %+v (%v), want none yet", page, err)
	}
	if all, pages := found(t, f, search, 20); len(all) != 10 || pages != 3 {
		t.Errorf("%d deliveries are found on %d pages", len(all), pages)
	}
}

func TestDeliveriesAreForThoseWhoManageTheIntegrations(t *testing.T) {
	f, _ := planted(t)
	ctx := t.Context()
	id := servicetest.Value[string](f.Fixture, `SELECT id FROM deliveries WHERE status = 'failed' LIMIT 1`)
	polar := f.As("ola")
	polar.Kind = models.KindPerson
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("ola"))
	for name, call := range map[string]func(store.Actor) error{
		"search": func(a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.SearchDeliveries(ctx, a, webhooks.DeliverySearch{WebhookID: f.ID("erp_hook")}, "", 0))
		},
		"search of an integration": func(a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.SearchDeliveries(ctx, a, webhooks.DeliverySearch{IntegrationID: f.ID("erp")}, "", 0))
		},
		"page": func(a store.Actor) error { return servicetest.ErrorOf(f.Webhooks.DeliveryForPerson(ctx, a, id)) },
		"count": func(a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.CountMatching(ctx, a, webhooks.DeliverySearch{WebhookID: f.ID("erp_hook")}))
		},
		"redeliver": func(a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.RedeliverSelected(ctx, a, store.NoKey, []string{id}))
		},
		"redeliver all": func(a store.Actor) error {
			_, err := f.Webhooks.RedeliverMatching(ctx, a, store.NoKey, webhooks.DeliverySearch{WebhookID: f.ID("erp_hook")})
			return err
		},
	} {
		servicetest.WantCode(t, name+" without the permission", call(f.As("bob")), models.CodePermissionDenied)
		servicetest.WantCode(t, name+" of another organization", call(polar), models.CodeNotFound)
		servicetest.WantCode(t, name, call(f.As("ann")), "")
	}
	all, err := f.Webhooks.SearchDeliveries(ctx, polar, webhooks.DeliverySearch{}, "", 0)
	if err != nil || len(all.Deliveries) != 0 {
		t.Errorf("another organization sees %d deliveries (%v)", len(all.Deliveries), err)
	}
	_, err = f.Webhooks.SearchDeliveries(ctx, polar, webhooks.DeliverySearch{}, id, 0)
	servicetest.WantCode(t, "a page after another organization's delivery", err, models.CodeCursorExpired)
}

// The body is only for those who may read the record, and is what would be sent.
func TestADeliveryShowsWhatWouldBeSentNow(t *testing.T) {
	f := servicetest.NewHarness(t)
	record := servicetest.Create(t, f.Fixture)
	id := servicetest.DeliveryOf(f.Fixture, "erp_hook", record)
	shown, err := f.Webhooks.DeliveryForPerson(t.Context(), f.As("ann"), id)
	servicetest.Must(t, err)
	sent := servicetest.Claim(t, f.Fixture, "erp_hook").Deliveries[0]
	if string(shown.Body) != string(sent.Body) || shown.Header.Get("Service-Event-Id") != sent.EventID || shown.Header.Get("Service-Signature") == "" || shown.Withheld != "" {
		t.Errorf("shown is %s with %v, sent %s", shown.Body, shown.Header, sent.Body)
	}
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed"))
	if shown, err = f.Webhooks.DeliveryForPerson(t.Context(), f.As("zed"), id); err != nil || shown.Body != nil || shown.Header != nil || shown.Withheld == "" {
		t.Errorf("someone who may not read the record sees %s (%v)", shown.Body, err)
	}
	for _, test := range []struct{ change, withheld string }{
		{`UPDATE webhooks SET events = '{issue.created}'`, "does not subscribe to work_order.created"},
		{`UPDATE integrations SET scopes = '{issues:read}'`, "may not read the record"},
		{`UPDATE integrations SET enabled = false`, "may not use the service"},
	} {
		f.Exec(test.change)
		shown, err = f.Webhooks.DeliveryForPerson(t.Context(), f.As("ann"), id)
		if shows := strings.Contains(test.withheld, "subscribe"); err != nil || (shown.Body != nil) != shows || !strings.Contains(shown.Withheld, test.withheld) {
			t.Errorf("%s: %s, %q (%v)", test.change, shown.Body, shown.Withheld, err)
		}
	}
}

// Selected deliveries are redelivered all or none, whatever their status.
func TestSelectedDeliveriesAreRedelivered(t *testing.T) {
	f, record := planted(t)
	ctx := t.Context()
	ids := servicetest.Value[[]string](f.Fixture, `SELECT array_agg(id) FROM (SELECT DISTINCT ON (status) id::text FROM all_deliveries ORDER BY status, id) x`)
	f.PlantDeliveries("reader_hook", record, models.EventWorkOrderCreated, models.DeliveryFailed, 404, 1, servicetest.Start.Add(-time.Hour))
	other := servicetest.DeliveryOf(f.Fixture, "reader_hook", record)
	f.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'x' WHERE id = $1`, f.ID("reader_hook"))
	f.Wakes.Take()
	for name, wrong := range map[string]string{"an unknown one": "dlv_01kz0000000000000000000000", "one of an address that is off": other} {
		if _, err := f.Webhooks.RedeliverSelected(ctx, f.As("ann"), store.NoKey, append(slices.Clone(ids), wrong)); err == nil {
			t.Errorf("with %s: no error", name)
		}
	}
	if n := servicetest.WithStatus(f.Fixture, "erp_hook", models.DeliveryPending); n != 10 || len(f.Wakes.Take()) > 0 {
		t.Fatalf("%d are pending after errors, want none more", n)
	}
	n, err := f.Webhooks.RedeliverSelected(ctx, f.As("ann"), store.NoKey, ids)
	if err != nil || n != (webhooks.Released{Due: 5}) {
		t.Errorf("%+v are redelivered (%v), want all but the pending one", n, err)
	}
	servicetest.Expect(t, "pending", servicetest.WithStatus(f.Fixture, "erp_hook", models.DeliveryPending), 15)
	if wakes := f.Wakes.Take(); !slices.Contains(wakes, store.WakeTarget{Kind: store.TargetWebhook, ID: f.ID("erp_hook")}) {
		t.Errorf("woken are %v", wakes)
	}
	if order := servicetest.DispatchAll(t, f.Fixture, "erp_hook"); len(order) != 15 {
		t.Errorf("%d are sent", len(order))
	}
}

// A redelivery of all that match is stored at once and carried out in batches, each once.
func TestAllThatMatchAreRedelivered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		search webhooks.DeliverySearch
		want   int
	}{
		{webhooks.DeliverySearch{Status: models.DeliveryFailed}, 1110},
		{webhooks.DeliverySearch{Status: models.DeliveryFailed, Response: "5xx"}, 10},
		{webhooks.DeliverySearch{Status: models.DeliveryFailed, Type: models.EventIssueCreated}, 1100},
		{webhooks.DeliverySearch{Status: models.DeliveryRetrying}, 10},
		{webhooks.DeliverySearch{Status: models.DeliveryDelivered}, 10},
		{webhooks.DeliverySearch{From: servicetest.Start.Add(-9 * time.Hour), To: servicetest.Start.Add(-7 * time.Hour)}, 20},
		{webhooks.DeliverySearch{}, 1150},
	} {
		t.Run(fmt.Sprint(tt.search), func(t *testing.T) {
			t.Parallel()
			f, record := planted(t)
			f.Exec(`DELETE FROM webhooks WHERE id <> $1`, f.ID("erp_hook"))
			f.PlantDeliveries("erp_hook", record, models.EventIssueCreated, models.DeliveryFailed, 404, 1100, servicetest.Start.Add(-3*time.Hour))
			counts, err := f.Webhooks.CountMatching(t.Context(), f.As("ann"), tt.search)
			if err != nil || len(counts) != 1 || counts[0].N-counts[0].Pending != tt.want {
				t.Errorf("counted are %+v (%v)", counts, err)
			}
			n, err := f.Webhooks.RedeliverMatching(t.Context(), f.As("ann"), store.NoKey, tt.search)
			if err != nil || n != 1 {
				t.Fatalf("ordered at %d addresses (%v)", n, err)
			}
			servicetest.Expect(t, "pending after the order",
				servicetest.WithStatus(f.Fixture, "erp_hook", models.DeliveryPending), 10)
			f.SetDeliveries(models.DeliveryDelivered, `id IN (SELECT id FROM all_deliveries WHERE status = 'pending')`)
			unclaimed, err := f.Upkeep.Unclaimed(t.Context(), time.Second)
			if err != nil || !slices.Contains(unclaimed, store.WakeTarget{Kind: store.TargetWebhook, ID: f.ID("erp_hook"), OrganizationID: f.Acme.OrganizationID, Swept: true}) {
				t.Errorf("the sweep does not find the redelivery: %v", err)
			}
			f.Clock.Advance(time.Millisecond)
			newest := servicetest.Create(t, f.Fixture)
			pendingBefore := 1 // which is delivered too
			if tt.search.Status == "" && tt.search.From.IsZero() || tt.search.Status == models.DeliveryDelivered {
				pendingBefore += 10 // were pending before and are delivered now
			}
			if order := servicetest.DispatchAll(t, f.Fixture, "erp_hook"); len(order) != tt.want+pendingBefore {
				t.Errorf("%d are sent, want %d", len(order), tt.want+pendingBefore)
			}
			servicetest.Expect(t, "the newest one",
				servicetest.Status(t, f.Fixture, servicetest.DeliveryOf(f.Fixture, "erp_hook", newest)), models.DeliveryDelivered)
			servicetest.Expect(t, "unfinished redeliveries",
				servicetest.Value[int](f.Fixture, `SELECT count(*) FROM redeliveries`), 0)
		})
	}
}

// A worker that dies while it releases very many deliveries leaves some batches done. The next one does the rest:
// each is sent once, and what is new in between does not wait for the end.
func TestAnotherWorkerFinishesARelease(t *testing.T) {
	const many = 3500
	f := servicetest.New(t)
	records := make([]string, 32)
	for n := range records {
		records[n] = servicetest.Create(t, f)
	}
	f.SetDeliveries(models.DeliveryDelivered, `true`)
	f.PlantDeliveries("erp_hook", records[0], models.EventWorkOrderUpdated, models.DeliveryFailed, 500, many, servicetest.Start.Add(-3*time.Hour))
	f.Exec(`UPDATE deliveries SET record_id = ($1::text[])[1 + extract(epoch FROM created_at)::bigint % 32] WHERE status = 'failed'`, records)
	released, err := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), models.TimeOf(servicetest.Start.Add(-4*time.Hour)))
	if err != nil || released.Due != many {
		t.Fatalf("released are %+v: %v", released, err)
	}
	var sent []string
	send := func(lease webhooks.Lease) (more bool) {
		claim, err := f.Webhooks.Claim(t.Context(), lease, webhooks.ClaimRequest{Limit: 32})
		servicetest.Must(t, err)
		ids := make([]string, len(claim.Deliveries))
		for n, d := range claim.Deliveries {
			ids[n] = d.DeliveryID
		}
		f.SetDeliveries(models.DeliveryDelivered, `id = ANY ($1)`, ids)
		sent = append(sent, ids...)
		return claim.More
	}
	dies := servicetest.Acquire(t, f, "erp_hook")
	for servicetest.WithStatus(f, "erp_hook", models.DeliveryFailed) > many-2*1000 {
		send(dies)
	}
	killed, kill := context.WithCancel(t.Context())
	kill()
	if _, err := f.Webhooks.Claim(killed, dies, webhooks.ClaimRequest{Limit: 32}); err == nil {
		t.Error("a worker that was killed claims")
	}
	before := len(sent)
	newest := servicetest.DeliveryOf(f, "erp_hook", servicetest.Create(t, f))
	successor, _, err := f.Webhooks.AcquireLease(t.Context(), f.ID("erp_hook"), "successor")
	servicetest.Must(t, err)
	for send(successor) {
	}
	if after := slices.Index(sent, newest) - before; after < 0 || after > 1100 {
		t.Errorf("the newest is sent after %d others, want at most a batch", after)
	}
	if different := len(slices.Compact(slices.Sorted(slices.Values(sent)))); len(sent) != many+1 || different != len(sent) {
		t.Errorf("%d are sent, %d different ones, want %d, each once", len(sent), different, many+1)
	}
	servicetest.Expect(t, "unfinished releases", servicetest.Value[int](f, `SELECT count(*) FROM redeliveries`), 0)
}

// A redelivery of what matches at an integration is ordered at its addresses only.
func TestTheDeliveriesOfAnIntegrationAreRedelivered(t *testing.T) {
	f, record := planted(t)
	f.PlantDeliveries("reader_hook", record, models.EventWorkOrderCreated, models.DeliveryFailed, 404, 3, servicetest.Start.Add(-time.Hour))
	search := webhooks.DeliverySearch{IntegrationID: f.ID("reader"), Status: models.DeliveryFailed}
	counts, err := f.Webhooks.CountMatching(t.Context(), f.As("ann"), search)
	if err != nil || len(counts) != 1 || counts[0].N != 3 || counts[0].WebhookID != f.ID("reader_hook") {
		t.Errorf("counted are %+v (%v)", counts, err)
	}
	if n, err := f.Webhooks.RedeliverMatching(t.Context(), f.As("ann"), store.NoKey, search); err != nil || n != 1 {
		t.Errorf("ordered at %d addresses (%v)", n, err)
	}
	servicetest.Expect(t, "ordered at",
		servicetest.Value[string](f.Fixture, `SELECT string_agg(webhook_id, ' ') FROM redeliveries`), f.ID("reader_hook"))
}

// Turning an address off ends its redeliveries.
func TestARedeliveryEndsWithItsAddress(t *testing.T) {
	f, _ := planted(t)
	failed := webhooks.DeliverySearch{Status: models.DeliveryFailed}
	servicetest.Must(t, servicetest.ErrorOf(f.Webhooks.RedeliverMatching(t.Context(), f.As("ann"), store.NoKey, failed)))
	servicetest.TurnOff(t, f.Fixture, "erp_hook")
	_, err := f.Webhooks.RedeliverMatching(t.Context(), f.As("ann"), store.NoKey, failed)
	servicetest.WantCode(t, "a redelivery at an address that is off", err, models.CodeValidationFailed)
	servicetest.TurnOn(t, f.Fixture, "erp_hook", nil)
	f.SetDeliveries(models.DeliveryDelivered, `status IN ('pending', 'retrying')`)
	if order := servicetest.DispatchAll(t, f.Fixture, "erp_hook"); len(order) != 0 {
		t.Errorf("%d are sent", len(order))
	}
}
