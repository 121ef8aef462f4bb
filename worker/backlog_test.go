package worker

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestBacklogIsExportedWhileItIsFresh(t *testing.T) {
	f := servicetest.New(t)
	b := NewBacklog(f.Service, 10*time.Second, quiet)
	if got := gather(t, b); len(got) != 0 {
		t.Errorf("before the first read %v is exported", got)
	}
	_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	if err != nil {
		t.Fatal(err)
	}
	f.Exec(`UPDATE inventory_nodes SET parent_id = $1, changed_at = $2 WHERE id = $3`, f.ID("roof"), f.Clock.Now(), f.ID("hvac"))
	f.Clock.Advance(30 * time.Second)
	b.refresh(t.Context())
	pending := servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE status = 'pending'`)
	addresses := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	got := gather(t, b)
	wantMetrics(t, "after it", got, map[string]float64{
		"deliveries_pending": float64(pending), "deliveries_oldest_pending_seconds": 30, "deliveries_stalled_seconds": 30, "unclaimed_addresses": float64(pending),
		"deliveries_retrying": 0, "unclaimed_retries": 0, "dirty_records": 1, "dirty_records_oldest_seconds": 30, "unclaimed_records": 0,
		"addresses_on": float64(addresses), "addresses_off": 0, "addresses_turned_off": 0, "deliveries_failed": 0, "deliveries_held": 0, "addresses_failing": 0, "receivers_attempted": 0, "receivers_failing": 0, "receivers_late": 0, "xmin_horizon_age_seconds": 0, "mails_oldest_seconds": 30, "moves_oldest_seconds": 30,
		"backlog_counted_timestamp_seconds": float64(f.Clock.Now().UnixMilli()) / 1000,
	})
	if got["mails_waiting"] == 0 || len(got) != len(backlogGauges) {
		t.Errorf("exported is %v", got)
	}

	// Without a database the last values are exported for a while.
	f.Pool.Close()
	b.refresh(t.Context())
	f.Clock.Advance(staleAfter*10*time.Second + backlogTimeout)
	if got := gather(t, b); len(got) != len(backlogGauges) {
		t.Error("the last values are not exported for a while")
	}
	f.Clock.Advance(time.Second)
	if got := gather(t, b); len(got) != 0 {
		t.Errorf("long afterwards %v is exported", got)
	}
}

func TestBacklogLogsFailedReads(t *testing.T) {
	var written bytes.Buffer // of the service too, which logs an unreachable database
	log := slog.New(slog.NewTextHandler(&written, nil))
	f := servicetest.New(t, func(o *store.Options) { o.Log = log })
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, tt := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		logged  bool
	}{
		"time limit":         {t.Context(), time.Nanosecond, true},
		"the worker stopped": {stopped, backlogTimeout, false},
		"no failure":         {t.Context(), backlogTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			written.Reset()
			b := NewBacklog(f.Service, 10*time.Second, log)
			b.timeout = tt.timeout
			b.refresh(tt.ctx)
			if logged := written.Len() > 0; logged != tt.logged {
				t.Errorf("logged is %v, want %v: %s", logged, tt.logged, written.String())
			}
		})
	}
}

func TestBacklogIsReadAtOnceAndAgain(t *testing.T) {
	f := servicetest.New(t, func(o *store.Options) { o.Now = time.Now })
	b := NewBacklog(f.Service, time.Millisecond, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		b.Run(ctx)
		close(done)
	}()
	last := func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.last.At.Time
	}
	servicetest.Await(t, "it is read", func() bool { return !last().IsZero() })
	first := last()
	servicetest.Await(t, "it is read again", func() bool { return last().After(first) })
	cancel()
	<-done
}
