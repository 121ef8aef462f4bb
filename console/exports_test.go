package console_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// A person's files are made one after the other, and do not take the places of colleagues before.
func TestFilesOfAPersonAreMadeOneByOne(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, bob := s.SignedIn("ann"), s.SignedIn("bob")
	ctx, giveUp := context.WithCancel(t.Context())
	made, err := s.Store.Exporting.Enter(ctx, s.ID("ann"))
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if _, err := s.Store.Exporting.Enter(ctx, s.ID("ann")); !errors.Is(err, context.Canceled) {
				t.Errorf("a file that waits: %v", err)
			}
		})
	}
	servicetest.Await(t, "two files wait", func() bool { return s.Store.Exporting.Waiting() == 2 })
	ann.Get("/console/work-orders.csv").Want(http.StatusServiceUnavailable, "Other files of yours are being made.")
	ann.Get("/console/work-orders").Want(http.StatusOK)
	bob.Get("/console/work-orders.csv").Want(http.StatusOK)
	giveUp()
	waiting.Wait()
	made()
	ann.Get("/console/work-orders.csv").Want(http.StatusOK)
}
