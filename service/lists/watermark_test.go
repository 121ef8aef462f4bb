package lists_test

import (
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// workOrdersSince reads a page of the changes of erp's work orders, of two at most.
func workOrdersSince(t *testing.T, f *servicetest.Fixture, since string) (ids []string, p servicetest.Page, err error) {
	t.Helper()
	f.WaitForOpenTransactions()
	body, err := f.Records.WorkOrders(t.Context(), f.Actor("erp"), records.WorkOrderFilter{}, lists.ListRequest{Limit: 2, ChangedSince: since})
	if err != nil {
		return nil, servicetest.Page{}, err
	}
	p = servicetest.Read[servicetest.Page](t, body)
	for _, record := range p.Data {
		ids = append(ids, servicetest.Read[servicetest.Identified](t, record).ID)
	}
	return ids, p, nil
}

func createBy(t *testing.T, f *servicetest.Fixture, s *service.Service) string {
	t.Helper()
	result, err := s.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace the filter"})
	servicetest.Must(t, err)
	return result.RecordID
}

// The client's time is from a clock that is five seconds ahead of the one of the API server
// that makes the change.
func TestAChangeByASlowClockIsNotSkipped(t *testing.T) {
	f := servicetest.New(t)
	slow := f.NewInstance(func(o *store.Options) {
		o.Now = func() time.Time { return f.Clock.Now().Add(-5 * time.Second) }
	})
	f.Clock.Advance(time.Minute)
	since := f.Clock.Now().Format(time.RFC3339)
	f.Clock.Advance(time.Second)
	late := createBy(t, f, slow)
	f.Clock.Advance(time.Second)
	prompt := createBy(t, f, f.Service)
	f.Clock.Advance(time.Minute)
	got, _, err := workOrdersSince(t, f, since)
	if want := []string{late, prompt}; err != nil || !slices.Equal(got, want) {
		t.Errorf("since %s: %v, %v, want %v", since, got, err, want)
	}
}

func TestATimeBeginsAtABeatTenSecondsBefore(t *testing.T) {
	f := servicetest.New(t)
	at := f.Clock.Now()
	first := createBy(t, f, f.Service)
	f.WatermarkAt(at)
	second := createBy(t, f, f.Service)
	f.WatermarkAt(at.Add(time.Minute))
	third := createBy(t, f, f.Service)
	for since, want := range map[time.Duration][]string{
		10*time.Second - time.Millisecond:               {first, second},
		10 * time.Second:                                {second, third},
		time.Minute + 10*time.Second - time.Millisecond: {second, third},
		time.Minute + 10*time.Second:                    {third},
	} {
		if got, _, err := workOrdersSince(t, f, at.Add(since).Format(time.RFC3339Nano)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v after the first watermark: %v, %v, want %v", since, got, err, want)
		}
	}
}

// A database that was restored or failed over lacks the latest watermarks.
func TestTokensOfLostWatermarksAreVoid(t *testing.T) {
	f := servicetest.New(t)
	wantCode := func(what, since string, want models.Code) servicetest.Page {
		t.Helper()
		_, p, err := workOrdersSince(t, f, since)
		if models.CodeOf(err) != want {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
		return p
	}
	createBy(t, f, f.Service)
	kept := wantCode("the start", "2020-01-01T00:00:00Z", "").SyncToken
	f.Exec(`CREATE TABLE kept_watermarks AS SELECT * FROM watermarks`)
	createBy(t, f, f.Service)
	createBy(t, f, f.Service)
	createBy(t, f, f.Service)
	lost := wantCode("a token", kept, "")
	if _, err := f.Records.WorkOrders(t.Context(), f.Actor("erp"), records.WorkOrderFilter{},
		lists.ListRequest{Limit: 1, ChangedSince: kept, Cursor: lost.NextCursor}); err != nil {
		t.Errorf("a cursor: %v", err)
	}
	f.Exec(`DELETE FROM watermarks WHERE nonce NOT IN (SELECT nonce FROM kept_watermarks)`)
	wantCode("a token of a lost watermark", lost.SyncToken, models.CodeCursorExpired)
	if _, err := f.Records.WorkOrders(t.Context(), f.Actor("erp"), records.WorkOrderFilter{},
		lists.ListRequest{Limit: 1, ChangedSince: kept, Cursor: lost.NextCursor}); models.CodeOf(err) != models.CodeCursorExpired {
		t.Errorf("a cursor of a lost watermark: error %v, want %q", err, models.CodeCursorExpired)
	}
	wantCode("a token of a kept watermark", kept, "")
}

// Clients that poll share watermarks: only a page that shows something newer, or one that is
// read a second later, writes another.
func TestPagesShareWatermarks(t *testing.T) {
	f := servicetest.New(t)
	watermarks := func() int { return servicetest.Value[int](f, `SELECT count(*) FROM watermarks`) }
	_, p, err := workOrdersSince(t, f, "2020-01-01T00:00:00Z")
	if err != nil || watermarks() != 1 {
		t.Fatalf("the first page wrote %d watermarks, %v", watermarks(), err)
	}
	f.Exec(`UPDATE watermarks SET at = now() + interval '1 hour'`)
	for range 3 {
		if _, p, err = workOrdersSince(t, f, p.SyncToken); err != nil || len(p.Data) != 0 || watermarks() != 1 {
			t.Errorf("a page without changes: %v, %v; %d watermarks, want 1", p.Data, err, watermarks())
		}
	}
	id := createBy(t, f, f.Service)
	var got []string
	if got, p, err = workOrdersSince(t, f, p.SyncToken); err != nil || !slices.Equal(got, []string{id}) || watermarks() != 2 {
		t.Errorf("a page with a change: %v, %v; %d watermarks, want 2", got, err, watermarks())
	}
	if got, p, err = workOrdersSince(t, f, p.SyncToken); err != nil || len(got) != 0 {
		t.Errorf("the page after the change: %v, %v", got, err)
	}
	f.Exec(`UPDATE watermarks SET at = now() - interval '2 seconds'`)
	before := watermarks()
	if _, _, err = workOrdersSince(t, f, p.SyncToken); err != nil || watermarks() != before+1 {
		t.Errorf("two seconds later a page wrote %d watermarks, want 1; %v", watermarks()-before, err)
	}
}

func TestTheBacklogKnowsAHeldHorizon(t *testing.T) {
	f := servicetest.New(t)
	since := func() *models.Time {
		t.Helper()
		backlog, err := f.Upkeep.Backlog(t.Context(), time.Minute)
		servicetest.Must(t, err)
		return backlog.XminHorizonSince
	}
	at := models.TimeOf(f.Clock.Now())
	f.WatermarkAt(at.Time)
	f.WaitForOpenTransactions()
	if got := since(); got != nil {
		t.Errorf("the xmin horizon has not advanced since %v, want nil", got)
	}
	held := servicetest.Begin(t, f)
	var xid uint64
	servicetest.Must(t, held.QueryRow(t.Context(), `SELECT pg_current_xact_id()`).Scan(&xid))
	// Others may hold the xmin horizon first.
	for servicetest.Value[uint64](f, `SELECT pg_snapshot_xmin(pg_current_snapshot())`) < xid {
		if t.Context().Err() != nil {
			t.Fatal("a transaction outside this test does not end")
		}
	}
	for n := range 3 {
		f.Exec(`INSERT INTO watermarks (at) VALUES ($1)`, at.Add(time.Duration(n+1)*time.Minute))
	}
	if got := since(); got == nil || !got.Equal(at.Add(time.Minute)) {
		t.Errorf("the xmin horizon has not advanced since %v, want %v", got, at.Add(time.Minute))
	}
}
