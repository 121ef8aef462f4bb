package activities

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/mail"
	"millwright/models"
	"millwright/service/effects"
)

// noticeOf returns a notice of the kind, about a fitting record.
func noticeOf(kind models.NoticeKind) effects.MailedNotice {
	n := effects.MailedNotice{
		ID: 4711, Kind: kind, CreatedAt: models.TimeOf(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)),
		Readable: true, Organization: "Acme Facilities", ActorName: "Bob Stone",
	}
	number, target := int64(17), models.TimeOf(time.Date(2026, time.April, 5, 8, 30, 0, 0, time.UTC))
	switch subject, _, _ := strings.Cut(string(kind), "."); subject {
	case "work_order", "operator":
		n.RecordID, n.Number, n.Title, n.Node, n.Status, n.TargetDate = "wo_01", &number, "Replace filter", "AHU 1", "in_progress", &target
	case "issue":
		n.RecordID, n.Title, n.Node, n.Status = "iss_01", "It rattles", "AHU 1", "open"
	case "webhook":
		n.RecordID, n.Integration, n.URL = "whk_01", "ERP", "https://erp.example.com/hooks"
	case "person", "integration", "team", "organization":
		n.RecordID, n.IdentityKind, n.Identity = "idn_"+subject, subject, "Nia Hill"
		if subject == "organization" {
			n.Identity = n.Organization
		}
	}
	return n
}

// mailOf is an e-mail to Ann with the notices.
func mailOf(notices ...effects.MailedNotice) effects.Mail {
	return effects.Mail{PersonName: "Ann Field", PersonEmail: "ann@acme.example.com", Notices: notices}
}

// composed returns the message of the mail.
func composed(t *testing.T, m effects.Mail) mail.Message {
	t.Helper()
	message, err := compose(m, "https://fix.example")
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestEveryKindOfNoticeIsRendered(t *testing.T) {
	subjects := map[string]models.NoticeKind{}
	for _, kind := range models.AllNoticeKinds {
		t.Run(string(kind), func(t *testing.T) {
			n := noticeOf(kind)
			message := composed(t, mailOf(n))
			if message.ID != "notice-4711" || message.To.Name != "Ann Field" || message.To.Email != "ann@acme.example.com" {
				t.Errorf("message %s to %s", message.ID, message.To)
			}
			about, what, said := strings.Cut(message.Subject, ": ")
			want := map[string]string{"wo_01": "Work order 17, Replace filter", "iss_01": "Feedback, It rattles", "whk_01": "Integration ERP",
				"idn_person": "Nia Hill", "idn_integration": "Integration Nia Hill", "idn_team": "Team Nia Hill", "idn_organization": "Acme Facilities"}[n.RecordID]
			if about != want || !said || what == "" {
				t.Errorf("the subject is %q, want %q and a reason", message.Subject, want)
			}
			if other, taken := subjects[what]; taken {
				t.Errorf("%s has the same subject: %q", other, what)
			}
			subjects[what] = kind
			for part, text := range map[string]string{"text": message.Text, "html": message.HTML} {
				for _, fact := range []string{"Hello Ann Field,", "Acme Facilities", n.Title, n.Node, strings.ReplaceAll(n.Status, "_", " "), mail.Unlinked(n.URL), n.RecordID, n.Integration, n.Identity} {
					if !strings.Contains(text, fact) {
						t.Errorf("the %s lacks %q:\n%s", part, fact, text)
					}
				}
				if n.TargetDate != nil && !strings.Contains(text, "5 April 2026, 08:30 UTC") {
					t.Errorf("the %s lacks the target date:\n%s", part, text)
				}
				page := map[string]string{"wo_01": "/work-orders/wo_01", "iss_01": "/feedback/iss_01", "whk_01": "/webhooks/whk_01", "idn_person": "/people/idn_person",
					"idn_integration": "/integrations/idn_integration", "idn_team": "/teams/idn_team"}[n.RecordID]
				if !strings.Contains(text, "https://fix.example/console"+page) {
					t.Errorf("the %s lacks a link to the page:\n%s", part, text)
				}
				if strings.ContainsAny(text, "{}") || strings.Contains(text, "<no value>") || strings.Contains(text, "Someone") {
					t.Errorf("the %s has a placeholder:\n%s", part, text)
				}
			}
		})
	}
	if len(reasons) != len(models.AllNoticeKinds) {
		t.Errorf("%d kinds are rendered, want %d", len(reasons), len(models.AllNoticeKinds))
	}
}

// A message about something that its reader may not read has no name in it but the reader's and the
// organization's, and links to the inbox.
func TestUnreadableNoticesAreMailedWithoutNames(t *testing.T) {
	for _, kind := range models.AllNoticeKinds {
		t.Run(string(kind), func(t *testing.T) {
			n := noticeOf(kind)
			n = effects.MailedNotice{ID: n.ID, Kind: kind, RecordID: n.RecordID, CreatedAt: n.CreatedAt, About: n.TargetDate, Organization: n.Organization}
			message := composed(t, mailOf(n))
			topic, _, _ := strings.Cut(string(kind), ".")
			if about, what, _ := strings.Cut(message.Subject, ": "); about != topics[topic] || about == "" || what != reasons[kind].subject {
				t.Errorf("the subject is %q", message.Subject)
			}
			for part, text := range map[string]string{"text": message.Text, "html": message.HTML} {
				if !strings.Contains(text, unreadable) || !strings.Contains(text, "https://fix.example/console/notices") {
					t.Errorf("the %s does not tell that the reader may not read it, or does not link to the inbox:\n%s", part, text)
				}
				for _, hidden := range []string{n.RecordID, "Someone", "5 April 2026", "<no value>"} {
					if strings.Contains(text, hidden) {
						t.Errorf("the %s has %q:\n%s", part, hidden, text)
					}
				}
			}
		})
	}
}

func TestNoticeEmailSaysWhoAndWhy(t *testing.T) {
	type notice = effects.MailedNotice
	asItIs := func(*notice) {}
	tests := []struct {
		name   string
		kind   models.NoticeKind
		change func(n *notice)
		want   string
	}{
		{"who sent it back, and the comment", models.NoticeSentBack, func(n *notice) { n.Reason = "The belt is still loose." },
			"Bob Stone reviewed the work and sent it back. The belt is still loose."},
		{"without a comment", models.NoticeSentBack, asItIs, "Bob Stone reviewed the work and sent it back.\n"},
		{"why it was cancelled", models.NoticeCancelled, func(n *notice) { n.Reason = "Ordered twice." },
			"Bob Stone cancelled the work order. Ordered twice."},
		{"why an address was turned off", models.NoticeWebhookOff, func(n *notice) { n.OffReason = "A delivery failed for good." },
			"held from now on. A delivery failed for good. Once"},
		{"someone, if the actor is unknown", models.NoticeHeld, func(n *notice) { n.ActorName = "" }, "Someone put the work order on hold."},
		{"since when a review waits", models.NoticeReviewWaits, func(n *notice) { n.About = n.TargetDate },
			"The work has been waiting for your review since 5 April 2026, 08:30 UTC."},
		{"since when a review is overdue", models.NoticeReviewOverdue, func(n *notice) { n.About = n.TargetDate },
			"waiting for its review since 5 April 2026, 08:30 UTC. Its consultants were reminded."},
		{"what was changed", models.NoticeUpdated, func(n *notice) { n.Changed = []string{"title", "priority", "target_date"} },
			"Bob Stone changed the title, priority and target date."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := noticeOf(tt.kind)
			tt.change(&n)
			if text := composed(t, mailOf(n)).Text; !strings.Contains(text, tt.want) {
				t.Errorf("the message lacks %q:\n%s", tt.want, text)
			}
		})
	}
}

func TestNoticeEmailEscapesTexts(t *testing.T) {
	n := noticeOf(models.NoticeSentBack)
	n.Title, n.ActorName, n.Reason = `<script>alert(1)</script>`, "Bob & Söhne {reason}", "5 < 6 {actor}"
	message := composed(t, mailOf(n))
	if !strings.Contains(message.Text, "Bob & Söhne {reason} reviewed the work and sent it back. 5 < 6 {actor}") ||
		!strings.Contains(message.Text, "Title: <script>alert(1)</script>") {
		t.Errorf("the text is changed:\n%s", message.Text)
	}
	if strings.Contains(message.HTML, "<script>") || !strings.Contains(message.HTML, "5 &lt; 6") || !strings.Contains(message.HTML, "Bob &amp; Söhne") {
		t.Errorf("the html is not escaped:\n%s", message.HTML)
	}
}

func TestNoticeEmailOmitsUnknownKinds(t *testing.T) {
	unknown := noticeOf(models.NoticeHeld)
	unknown.Kind = "work_order.teleported"
	message := composed(t, mailOf(unknown, noticeOf(models.NoticeHeld)))
	if message.Subject != "Work order 17, Replace filter: on hold" || strings.Contains(message.Text, "teleported") {
		t.Errorf("subject %q:\n%s", message.Subject, message.Text)
	}
	if _, err := compose(mailOf(unknown), "https://fix.example"); err == nil {
		t.Error("a notice of an unknown kind alone is mailed")
	}
}

// Several changes of one record are told in the order in which they came, each once.
func TestChangesOfARecordAreOneMail(t *testing.T) {
	renamed, moved := noticeOf(models.NoticeUpdated), noticeOf(models.NoticeUpdated)
	renamed.Changed, moved.Changed, moved.ActorName = []string{"title"}, []string{"target_date"}, "Cat Brook"
	m := mailOf(noticeOf(models.NoticeAssigned), renamed, renamed, moved)
	m.TimeZone = "Europe/Helsinki"
	message := composed(t, m)
	if message.Subject != "Work order 17, Replace filter: assigned to you, changed" {
		t.Errorf("the subject is %q", message.Subject)
	}
	want := "Bob Stone assigned the work order to you or your team.\n\nBob Stone changed the title.\n\nCat Brook changed the target date.\n"
	if !strings.Contains(message.Text, want) || !strings.Contains(message.Text, "Target date: 5 April 2026, 11:30 EEST") {
		t.Errorf("the message lacks %q, or has another time zone:\n%s", want, message.Text)
	}
}

// A mail about several things names their number, and has a line with a link for each.
func TestNoticesOfSeveralRecordsAreOneMail(t *testing.T) {
	another := noticeOf(models.NoticeCancelled)
	number := int64(18)
	another.RecordID, another.Number, another.Title, another.Reason = "wo_02", &number, "Clean duct", "Ordered twice."
	hidden := effects.MailedNotice{ID: 4713, Kind: models.NoticeUnassigned, RecordID: "wo_03", Organization: "Acme Facilities"}
	for name, test := range map[string]struct {
		notices []effects.MailedNotice
		subject string
		lines   []string
	}{
		"work orders": {[]effects.MailedNotice{noticeOf(models.NoticeHeld), another}, "News about 2 work orders", []string{
			"Work order 17, Replace filter: Bob Stone put the work order on hold.\nhttps://fix.example/console/work-orders/wo_01\n",
			"Work order 18, Clean duct: Bob Stone cancelled the work order. Ordered twice.\nhttps://fix.example/console/work-orders/wo_02\n",
		}},
		"one that may not be read": {[]effects.MailedNotice{another, hidden}, "News about 2 work orders", []string{
			"A work order: " + unreadable + "\nhttps://fix.example/console/notices\n",
		}},
		"records and a role": {[]effects.MailedNotice{noticeOf(models.NoticeFeedbackOpened), another, noticeOf(models.NoticeRoleChanged)}, "News about 3 things", []string{
			"Feedback, It rattles: Bob Stone gave feedback.\nhttps://fix.example/console/feedback/iss_01\n",
			"Nia Hill: Bob Stone changed what Nia Hill may do in the organization.\nhttps://fix.example/console/people/idn_person\n",
		}},
	} {
		message := composed(t, mailOf(test.notices...))
		if message.Subject != test.subject {
			t.Errorf("%s: the subject is %q, want %q", name, message.Subject, test.subject)
		}
		for _, line := range test.lines {
			if !strings.Contains(message.Text, line) {
				t.Errorf("%s: the message lacks %q:\n%s", name, line, message.Text)
			}
		}
	}
}

// A mail about very many things lists the first, and where the others are.
func TestLongMailsAreCut(t *testing.T) {
	var notices []effects.MailedNotice
	for i := range maxListedItems + 2 {
		n := noticeOf(models.NoticeHeld)
		n.RecordID = fmt.Sprintf("wo_%02d", i)
		notices = append(notices, n)
	}
	message := composed(t, mailOf(notices...))
	if n := strings.Count(message.Text, "/console/work-orders/"); n != maxListedItems || !strings.Contains(message.Text, "2 more are in your inbox: https://fix.example/console/notices\n") {
		t.Errorf("it lists %d:\n%s", n, message.Text)
	}
	if message.Subject != fmt.Sprintf("News about %d work orders", len(notices)) {
		t.Errorf("the subject is %q", message.Subject)
	}
}
