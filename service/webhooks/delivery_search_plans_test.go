package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// Searches follow the indexes of an address even if their plans were made while the tables
// were empty, and read little more than they show or may look through.
func TestSearchesKeepRightPlans(t *testing.T) {
	t.Parallel()
	f := servicetest.NewHarness(t)
	record := servicetest.Create(t, f.Fixture)
	f.Exec(`DELETE FROM open_deliveries`)
	f.Exec(`DELETE FROM deliveries`)
	f.Exec(`VACUUM ANALYZE`)
	const limit, latest, stuck, list = 20, "latest of a record", "what is stuck", "operator's list"
	hour := servicetest.Start.Add(-12 * time.Hour)
	searches := map[string]struct {
		search webhooks.DeliverySearch
		most   int
	}{
		"newest":        {webhooks.DeliverySearch{}, 1500},
		"of an address": {webhooks.DeliverySearch{WebhookID: f.ID("reader_hook")}, 1000},
		"of reader":     {webhooks.DeliverySearch{IntegrationID: f.ID("reader")}, 1000},
		"failed":        {webhooks.DeliverySearch{Status: models.DeliveryFailed}, 1500},
		"retrying":      {webhooks.DeliverySearch{Status: models.DeliveryRetrying}, 1500},
		"of a time":     {webhooks.DeliverySearch{From: hour.Add(time.Hour), To: hour.Add(2 * time.Hour)}, 500},
		"of a record":   {webhooks.DeliverySearch{RecordID: record}, 1000},
		"of a type":     {webhooks.DeliverySearch{Type: models.EventIssueResolved}, 30_000},
		"3xx":           {webhooks.DeliverySearch{Response: "3xx"}, 60_000},
		latest:          {webhooks.DeliverySearch{}, 1000},
		stuck:           {webhooks.DeliverySearch{}, 8000},
		list:            {webhooks.DeliverySearch{WebhookID: f.ID("reader_hook")}, 1000},
	}
	run := func(name string, search webhooks.DeliverySearch) {
		t.Helper()
		var err error
		switch name {
		case latest:
			_, err = f.Pages.WhoSees(t.Context(), f.As("ann"), record)
		case stuck:
			_, err = f.Pages.StuckForPerson(t.Context(), f.As("ann"))
		case list:
			_, err = f.Webhooks.Deliveries(t.Context(), webhooks.DeliveryFilter{WebhookID: search.WebhookID, Limit: limit})
		default:
			_, err = f.Webhooks.SearchDeliveries(t.Context(), f.As("ann"), search, "", limit)
		}
		servicetest.Must(t, err)
	}
	for range 8 {
		for name, s := range searches {
			run(name, s.search)
		}
	}
	f.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryDelivered, 200, 40_000, hour)
	f.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 2000, hour)
	f.PlantDeliveries("reader_hook", record, models.EventWorkOrderUpdated, models.DeliveryRetrying, 500, 2000, hour)
	f.WaitForOpenTransactions()
	rows := func() int {
		t.Helper()
		f.Exec(`SELECT pg_stat_force_next_flush()`)
		const tables = ` WHERE relname LIKE ANY ('{deliveries%,open_deliveries,events%,attempts%}')`
		return servicetest.Value[int](f.Fixture, `SELECT ((SELECT sum(idx_tup_read) FROM pg_stat_user_indexes`+tables+`)
			+ (SELECT sum(seq_tup_read) FROM pg_stat_user_tables`+tables+`))::integer`)
	}
	check := func(of string) {
		t.Helper()
		for name, s := range searches {
			before := rows()
			run(name, s.search)
			n := rows() - before
			t.Logf("%s%s reads %d rows", name, of, n)
			if n > s.most {
				t.Errorf("%s%s: %d rows or entries of indexes are read, want at most %d", name, of, n, s.most)
			}
		}
	}
	check("")
	// The primary key has the order of ids, too: an address with few of them must not read all others'.
	f.Exec(`VACUUM ANALYZE`)
	check(", analyzed")
	f.AddAddresses(200)
	f.Exec(`VACUUM ANALYZE`)
	check(", of many addresses")
}
