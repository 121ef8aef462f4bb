package console_test

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

var timeInFile = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$`)

// Every file is UTF-8 with a byte order mark, and its times are in the person's zone with their
// offset, also where the clocks have changed between two rows.
func TestFilesForSpreadsheets(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	for i, due := range []string{"2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"} {
		s.Exec(`UPDATE work_orders SET title = $2, target_date = $3, completed_at = NULL WHERE id = $1`, newRecord(t, s.Site), "Größe", due)
		s.Exec(`UPDATE log SET created_at = $2 WHERE id = (SELECT id FROM log WHERE organization_id = $1 ORDER BY id LIMIT 1 OFFSET $3)`, s.Acme.OrganizationID, due, i)
	}
	times := []string{"time", "due", "created", "completed"}
	files := 0
	for zone, want := range map[string][2]string{
		"":                {"2026-01-15T12:00:00+00:00", "2026-07-15T12:00:00+00:00"},
		"Europe/Helsinki": {"2026-01-15T14:00:00+02:00", "2026-07-15T15:00:00+03:00"},
		"Asia/Kathmandu":  {"2026-01-15T17:45:00+05:45", "2026-07-15T17:45:00+05:45"},
		"America/Halifax": {"2026-01-15T08:00:00-04:00", "2026-07-15T09:00:00-03:00"},
	} {
		s.Exec(`UPDATE people SET time_zone = nullif($2, '') WHERE id = $1`, s.ID("ann"), zone)
		v := s.SignedIn("ann")
		for _, c := range routeCases {
			if !strings.HasSuffix(c.path, ".csv") {
				continue
			}
			files++
			body := v.Get(c.path).Want(http.StatusOK).Body
			content, marked := strings.CutPrefix(body, "\xef\xbb\xbf")
			if !marked || !utf8.ValidString(content) || strings.Contains(content, "\ufeff") {
				t.Errorf("%s does not begin with one byte order mark, or is not UTF-8: %.20q", c, body)
			}
			rows, err := csv.NewReader(strings.NewReader(content)).ReadAll()
			if err != nil || len(rows) < 3 {
				t.Fatalf("%s: %d rows, %v", c, len(rows), err)
			}
			var found []string
			for _, row := range rows[1:] {
				for i, cell := range row {
					isTime := slices.Contains(times, rows[0][i])
					if isTime && cell != "" && !timeInFile.MatchString(cell) || !isTime && timeInFile.MatchString(cell) {
						t.Errorf("%s: the %s is %q", c, rows[0][i], cell)
					}
					if isTime {
						found = append(found, cell)
					}
				}
			}
			if !slices.Contains(found, want[0]) || !slices.Contains(found, want[1]) {
				t.Errorf("%s in %q has the times %q, want %q among them", c, zone, found, want)
			}
		}
	}
	if files != 8 {
		t.Errorf("%d files were read", files)
	}
}

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
