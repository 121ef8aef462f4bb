package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
)

// A person's files are made one after the other, and do not take the places of colleagues before.
func TestFilesOfAPersonAreMadeOneByOne(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, bob := s.SignedIn("ann"), s.SignedIn("bob")
	var leave []func()
	for range 3 { // one is made, two wait
		file, err := s.Store.Exporting.Request(s.ID("ann"), true)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, file.Release)
	}
	ann.Get("/console/work-orders.csv").Want(http.StatusServiceUnavailable, "Other files of yours are being made.")
	ann.Get("/console/work-orders").Want(http.StatusOK)
	bob.Get("/console/work-orders.csv").Want(http.StatusOK)
	for _, done := range leave {
		done()
	}
	ann.Get("/console/work-orders.csv").Want(http.StatusOK)
}
