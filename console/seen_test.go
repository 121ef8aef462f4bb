package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// unread counts the unread notices of a person.
func unread(s *consoletest.Site, key string) int {
	return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND read_at IS NULL`, s.ID(key))
}

// Opening a work order marks the notices about it read, and no others: with scripts after the
// page has loaded, without them by opening a notice.
func TestOpeningARecordReadsItsNotices(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		_, path := planned(t, s)
		planned(t, s)
		if n := unread(s, "bob"); n != 2 {
			t.Fatalf("%d notices are unread", n)
		}
		bob := s.SignedIn("bob")
		bob.Get(path).Want(http.StatusOK, path+"/seen")
		if n := unread(s, "bob"); n != 2 {
			t.Error("GET changes data")
		}
		b.SignIn("bob")
		if scripts := !strings.Contains(t.Name(), "without"); scripts {
			b.Open(path)
			b.WantText("Replace the belt")
			b.Open("/console/notices")
			b.WantText("Mark all as read")
		} else {
			bob.Post(path+"/seen", nil).Want(http.StatusOK)
		}
		if n := unread(s, "bob"); n != 1 {
			t.Errorf("%d notices are unread after opening one of two", n)
		}
	})
}

// A rejected form opens at its first mistake.
func TestFocusGoesToTheFirstMistake(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	id := plannedWorkOrder(t, s)
	path := "/console/work-orders/" + id
	bob := s.SignedIn("bob")
	for _, test := range []struct {
		from, to string
		fields   []string
		focused  string
	}{
		{path + "/answers", path + "/answers", []string{s.ID("q_hours"), "many", s.ID("q_pressure"), "much"}, s.ID("q_hours")},
		{path + "/answers", path + "/answers", []string{"complete", "yes"}, s.ID("q_state") + "-0"},
		{path + "/edit", path + "/edit", []string{"title", " ", "external_id", strings.Repeat("x", 201)}, "title"},
		{path, path + "/comments", []string{"text", " "}, "text"},
		{"/console/work-orders/new?node=" + s.ID("ahu1"), "/console/work-orders", []string{"title", " "}, "title"},
	} {
		page := bob.Post(test.to, bob.Get(test.from).Want(http.StatusOK).Form(test.fields...)).Want(http.StatusUnprocessableEntity)
		if n := strings.Count(page.Body, " autofocus"); n != 1 {
			t.Errorf("%s: %d fields have the focus", test.to, n)
		}
		before, _, _ := strings.Cut(page.Body, " autofocus")
		if input := before[strings.LastIndex(before, "<"):]; !strings.Contains(input, `id="`+test.focused+`"`) {
			t.Errorf("%s: the focus is at %s", test.to, input)
		}
	}
	// If no field is wrong, the message about the whole form has the focus.
	form := bob.Get(path+"/edit").Form("title", "Mine")
	if _, err := s.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.RequestKey{}, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Theirs", Set: true}}); err != nil {
		t.Fatal(err)
	}
	bob.Post(path+"/edit", form).Want(http.StatusConflict, `role="alert" tabindex="-1" autofocus`)
}
