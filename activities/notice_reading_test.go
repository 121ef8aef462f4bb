package activities_test

import (
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// zedReads lets zed read everything that notices are about.
func zedReads(h *harness) {
	h.Exec(`INSERT INTO organization_permission_definitions (id, organization_id, name, grants) VALUES ('def_00000000000000000000000000', $1, 'Integrations', '{integrations}')`, h.Acme.OrganizationID)
	h.Exec(`UPDATE people SET organization_definition_id = 'def_00000000000000000000000000' WHERE id = $1`, h.ID("zed"))
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, h.ID("hq"), h.ID("zed"), h.ID("full"), h.Acme.OrganizationID)
}

// A notice shows what it is about, in the inbox and by e-mail alike, while its person may read that.
// Afterwards both tell that the person may not read it, and name nothing.
func TestNoticesShowOnlyWhatTheirPersonMayRead(t *testing.T) {
	t.Parallel()
	order := func(h *harness) string { return h.assign(h.Actor("erp"), []string{"crew"}, nil) }
	feedback := func(h *harness) string {
		given, err := h.Records.CreateFeedback(h.t.Context(), h.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
		if err != nil {
			h.t.Fatal(err)
		}
		return given.RecordID
	}
	id := func(key string) func(*harness) string { return func(h *harness) string { return h.ID(key) } }
	const (
		noAssignment  = `DELETE FROM assignments WHERE identity_id = (SELECT id FROM people WHERE email LIKE 'zed@%')`
		noPermission  = `UPDATE people SET organization_definition_id = NULL WHERE email LIKE 'zed@%'`
		noFeedback    = `UPDATE permission_definitions SET grants = array_remove(grants, 'feedback.read')`
		readerDeleted = `UPDATE integrations SET deleted_at = now() WHERE id = (SELECT id FROM identities WHERE name = 'Reader')`
	)
	for name, test := range map[string]struct {
		kind  models.NoticeKind
		about func(*harness) string
		// name is what the notice shows, take takes the right to read it; "" takes nothing.
		name, take string
	}{
		"a work order, without the permission on its node":   {models.NoticeCancelled, order, "Replace filter", noAssignment},
		"feedback, without the permission on its node":       {models.NoticeFeedbackOpened, feedback, "It rattles", noAssignment},
		"feedback, without feedback: read":                   {models.NoticeFeedbackOpened, feedback, "It rattles", noFeedback},
		"a comment on feedback, without feedback: read":      {models.NoticeFeedbackComment, feedback, "It rattles", noFeedback},
		"a webhook address, without Integrations":            {models.NoticeWebhookFailing, id("reader_hook"), "127.0.0.1", noPermission},
		"a webhook address that was turned off":              {models.NoticeWebhookOff, id("reader_hook"), "127.0.0.1", noPermission},
		"the secret of an address":                           {models.NoticeWebhookSecretRenewed, id("reader_hook"), "127.0.0.1", noPermission},
		"a webhook address that was deleted":                 {models.NoticeWebhookOff, id("reader_hook"), "127.0.0.1", `DELETE FROM webhooks WHERE url LIKE '%/reader'`},
		"the secret of an integration, without Integrations": {models.NoticeSecretRenewed, id("reader"), "Reader", noPermission},
		"the owners of an integration, without Integrations": {models.NoticeOwnersChanged, id("reader"), "Reader", noPermission},
		"an integration that was deleted":                    {models.NoticeOwnerLost, id("reader"), "Reader", readerDeleted},
		"a team that was deleted":                            {models.NoticeTeamAccess, id("crew"), "Crew", `UPDATE identities SET deleted_at = now() WHERE name = 'Crew'`},
		"a person, whom everyone sees":                       {models.NoticeRoleChanged, id("bob"), "Bob Stone", ""},
		"the organization":                                   {models.NoticeOpenIDRequired, id("acme"), "Acme Facilities", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newMailHarness(t)
			h.Acme.IDs["acme"] = h.Acme.OrganizationID
			zedReads(h)
			about := test.about(h)
			h.Exec(`DELETE FROM notices`)
			// shown returns a new notice as the inbox and an e-mail show it.
			shown := func() (inbox people.NoticeView, email string) {
				h.Clock.Advance(time.Minute)
				h.notify("acme", "zed", test.kind, about)
				sent := len(h.server.Messages())
				h.mail()
				messages := h.server.Messages()
				if len(messages) != sent+1 {
					t.Fatalf("%d messages were sent, want one", len(messages)-sent)
				}
				found, err := h.People.Notices(t.Context(), h.person("zed"), people.NoticeFilter{})
				if err != nil {
					t.Fatal(err)
				}
				return found[0], messages[sent].Subject + "\n" + messages[sent].Text
			}
			wantReadable := func(readable bool) {
				t.Helper()
				inbox, email := shown()
				if inbox.Readable != readable || strings.Contains(inbox.Title, test.name) != readable {
					t.Errorf("the inbox has %+v, want it readable: %v", inbox, readable)
				}
				if strings.Contains(strings.ReplaceAll(email, " ", ""), strings.ReplaceAll(test.name, " ", "")) != readable || strings.Contains(email, "You may not read") == readable {
					t.Errorf("the e-mail is, want it readable: %v\n%s", readable, email)
				}
				opened, err := h.People.ReadNotice(t.Context(), h.person("zed"), inbox.ID)
				if err != nil || (opened == about) != readable {
					t.Errorf("the notice opens %q: %v", opened, err)
				}
			}
			wantReadable(true)
			if test.take != "" {
				h.Exec(test.take)
			}
			wantReadable(test.take == "")
		})
	}
}

// While no one of the organization can sign in, notices wait in the inbox, except those about who may
// sign in.
func TestNoticesOfASuspendedOrganizationStayInTheInbox(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, h.Acme.OrganizationID)
	h.notify("acme", "bob", models.NoticeEmailChanged, h.ID("bob"))
	h.mail()
	h.wantMessages("bob the e-mail address was changed")
	h.wantNotices("2 inbox, 1 sent")
}

// Someone who was removed from a work order learns of the removal alone.
func TestWhoWasRemovedIsToldThatAlone(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew", "cat"}, nil)
	h.mail()
	h.Clock.Advance(time.Second)
	if _, err := h.Records.UnassignWorkOrder(t.Context(), h.person("ann"), store.NoKey, id, h.ID("cat")); err != nil {
		t.Fatal(err)
	}
	h.mail()
	messages := h.server.Messages()
	last := messages[len(messages)-1]
	if last.Recipient != h.Email("cat") || last.Subject != "A work order: no longer yours" {
		t.Errorf("the message to %s is %q", last.Recipient, last.Subject)
	}
	for _, hidden := range []string{"Replace filter", "AHU 1", "Ann Field", id, servicetest.Value[string](h.Fixture, `SELECT number::text FROM work_orders`) + ","} {
		if strings.Contains(last.Text+last.HTML, hidden) {
			t.Errorf("the message has %q:\n%s", hidden, last.Text)
		}
	}
}

// A mail names the customer of a service company to people with incoming work orders, as pages do.
func TestMailNamesTheCustomerToDispatchersOnly(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	forwarded := func(by store.Actor, to string) {
		t.Helper()
		if _, err := h.Records.AssignWorkOrder(t.Context(), by, store.NoKey, id, []string{to}, nil); err != nil {
			t.Fatal(err)
		}
	}
	forwarded(h.person("ann"), h.Polar.OrganizationID)
	forwarded(h.Actor("dispatch"), h.ID("pia"))
	for _, named := range []bool{true, false} {
		h.Exec(`UPDATE people SET admin = $1 WHERE id = $2`, named, h.ID("pia")) // administrators have every permission
		h.Exec(`DELETE FROM notices`)
		h.Clock.Advance(time.Minute)
		h.notify("polar", "pia", models.NoticeAssigned, id)
		h.mail()
		messages := h.server.Messages()
		last := messages[len(messages)-1]
		if last.Recipient != "pia@polar.example.com" || !strings.Contains(last.Text, "Replace filter") || strings.Contains(last.Text+last.HTML, "Acme Facilities") != named {
			t.Errorf("the message to %s is, want it to name the customer: %v\n%s", last.Recipient, named, last.Text)
		}
	}
}
