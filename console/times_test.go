package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// Times near now are named by their day, in the zone of the person.
func TestTimesAreShort(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 25, 0, 30, 0, 0, zone) // a Wednesday
	for at, want := range map[time.Time]string{
		now:                                       "Today 00:30",
		now.Add(23 * time.Hour):                   "Today 23:30",
		now.Add(24 * time.Hour):                   "Tomorrow 00:30",
		now.Add(-time.Hour):                       "Yesterday 23:30",
		now.AddDate(0, 0, 6):                      "Tue 00:30",
		now.AddDate(0, 0, 7):                      "2 Dec 00:30",
		now.AddDate(0, 0, -6):                     "Thu 00:30",
		now.AddDate(0, 2, 0):                      "25 Jan 2027",
		time.Date(2026, 1, 5, 7, 0, 0, 0, zone):   "5 Jan 07:00",
		time.Date(2024, 12, 31, 7, 0, 0, 0, zone): "31 Dec 2024",
	} {
		servicetest.Expect(t, at.String(), console.ShortTime(at, now), want)
	}
}

// An overdue date shows by how much, in any year, with the exact time on hover and focus.
func TestOverdueWorkIsLate(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	order := newRecord(t, s)
	now := s.Clock.Now()
	for at, want := range map[time.Time]string{
		now.Add(-6*24*time.Hour - time.Minute): "6 days late", now.Add(-25 * time.Hour): "1 day late", now.Add(-3 * time.Hour): "3 hours late", now.Add(-time.Second): "1 minute late",
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC): "739676 days late",
	} {
		s.Exec(`UPDATE work_orders SET target_date = $1 WHERE id = $2`, at, order)
		s.SignedIn("ann").Get("/console/work-orders").Want(http.StatusOK, want+`<span class="utc">`+at.Format("2 Jan 2006 15:04:05")+", ")
	}
}

// The first sign-in takes the time zone of the device, which later ones leave as it is. A zone that
// does not exist is ignored.
func TestTheFirstSignInTakesTheZoneOfTheDevice(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	zone := func() string {
		return servicetest.Value[string](s.Fixture, `SELECT coalesce(time_zone, '') FROM people WHERE id = $1`, s.ID("ann"))
	}
	for _, test := range []struct{ sent, want string }{
		{"", ""}, {"Mars/Olympus", ""}, {"Local", ""}, {strings.Repeat("x", 70), ""}, {"Europe/Zurich", "Europe/Zurich"}, {"Asia/Tokyo", "Europe/Zurich"},
	} {
		s.NewVisitor().Post("/console/sign-in", url.Values{"email": {s.Email("ann")}, "password": {consoletest.Password}, "zone": {test.sent}}).Want(http.StatusSeeOther)
		servicetest.Expect(t, "the zone after a sign-in from "+test.sent, zone(), test.want)
	}
	b := s.Browser(t)
	b.Open("/console/sign-in")
	zoneOfDevice := evaluated(t, b, `Intl.DateTimeFormat().resolvedOptions().timeZone`)
	if sent := b.Entered("zone"); sent == "" || sent != zoneOfDevice {
		t.Errorf("the script sends %q, the device is in %q", sent, zoneOfDevice)
	}
}
