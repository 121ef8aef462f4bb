package records_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// Creations with one external_id collide in one process and in two. One of them wins,
// the others are rejected, and no other write of their transactions is repeated.
func TestExternalIDsThatCollide(t *testing.T) {
	f := servicetest.NewHarness(t)
	var log syncBuffer
	logged := func(o *store.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	const pairs = 16
	actor := f.Actor("erp")
	var all sync.WaitGroup
	var releases []func()
	errs := map[string][]error{}
	var mu sync.Mutex
	for range 2 { // 64 writes, 32 for each service
		s := f.NewInstance(logged)
		releases = append(releases, storetest.HoldWrites(t.Context(), s.Store))
		for i := range 2 * pairs {
			externalID := fmt.Sprint("own ", len(releases), " ", i)
			if i%2 == 0 {
				externalID = fmt.Sprint("shared ", i/4) // twice in each service
			}
			all.Go(func() {
				_, err := s.Records.CreateFeedback(t.Context(), actor, store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise", ExternalID: &externalID})
				mu.Lock()
				defer mu.Unlock()
				errs[externalID] = append(errs[externalID], err)
			})
			servicetest.Await(t, "a write waits for a transaction", func() bool { return storetest.WritesWaiting(s.Store) > i })
		}
	}
	for _, release := range releases {
		release()
	}
	all.Wait()
	for externalID, of := range errs {
		created := 0
		for _, err := range of {
			if err == nil {
				created++
			} else if models.CodeOf(err) != models.CodeExternalIDTaken {
				t.Errorf("%s: %v, want created or %s", externalID, err, models.CodeExternalIDTaken)
			}
		}
		if created != 1 {
			t.Errorf("%s was created %d times by %d writes, want once: %v", externalID, created, len(of), errors.Join(of...))
		}
	}
	if n, want := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM feedback`), pairs/2+2*pairs; n != want {
		t.Errorf("%d records were created, want %d", n, want)
	}
	if text := log.String(); strings.Contains(text, "a group commit failed") {
		t.Errorf("a transaction was rolled back and its writes repeated:\n%s", text)
	}
}

// syncBuffer is a buffer for concurrent log lines.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
