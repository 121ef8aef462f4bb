package activities

import (
	"strings"
	"testing"
	"time"

	"millwright/mail"
	"millwright/models"
	"millwright/service/effects"
)

// noticeOf returns an e-mail of the kinds, about a fitting record.
func noticeOf(kinds ...models.NoticeKind) effects.NoticeEmail {
	n := effects.NoticeEmail{
		NoticeIDs: []int64{4711, 4712}, CreatedAt: models.TimeOf(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)),
		Readable: true, Organization: "Acme Facilities", PersonName: "Ann Field", PersonEmail: "ann@acme.example.com", ActorName: "Bob Stone",
	}
	for _, kind := range kinds {
		n.Kinds = append(n.Kinds, string(kind))
	}
	number, target := int64(17), models.TimeOf(time.Date(2026, time.April, 5, 8, 30, 0, 0, time.UTC))
	switch subject, _, _ := strings.Cut(string(kinds[0]), "."); subject {
	case "work_order", "operator":
		n.RecordID, n.Number, n.Title, n.Node, n.Status, n.TargetDate = "wo_01", &number, "Replace filter", "AHU 1", "in_progress", &target
	case "issue":
		n.RecordID, n.Title, n.Node, n.Status = "iss_01", "It rattles", "AHU 1", "open"
	case "webhook":
		n.RecordID, n.Integration, n.URL = "whk_01", "ERP", "https://erp.example.com/hooks"
	case "person", "integration", "team", "organization":
		n.RecordID, n.Kind, n.Identity = "idn_"+subject, subject, "Nia Hill"
		if subject == "organization" {
			n.Identity = n.Organization
		}
	}
	return n
}

func TestEveryKindOfNoticeIsRendered(t *testing.T) {
	subjects := map[string]models.NoticeKind{}
	for _, kind := range models.AllNoticeKinds {
		t.Run(string(kind), func(t *testing.T) {
			n := noticeOf(kind)
			message, err := compose(n, "https://fix.example")
			if err != nil {
				t.Fatal(err)
			}
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
			n = effects.NoticeEmail{
				NoticeIDs: n.NoticeIDs, Kinds: n.Kinds, RecordID: n.RecordID, CreatedAt: n.CreatedAt, About: n.TargetDate,
				Organization: n.Organization, PersonName: n.PersonName, PersonEmail: n.PersonEmail,
			}
			message, err := compose(n, "https://fix.example")
			if err != nil {
				t.Fatal(err)
			}
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
	tests := []struct {
		name  string
		email func() effects.NoticeEmail
		want  string
	}{
		{"who sent it back, and the comment", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeSentBack)
			n.Reason = "The belt is still loose."
			return n
		}, "Bob Stone reviewed the work and sent it back. The belt is still loose."},
		{"without a comment", func() effects.NoticeEmail { return noticeOf(models.NoticeSentBack) },
			"Bob Stone reviewed the work and sent it back.\n"},
		{"why it was cancelled", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeCancelled)
			n.Reason = "Ordered twice."
			return n
		}, "Bob Stone cancelled the work order. Ordered twice."},
		{"why an address was turned off", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeWebhookOff)
			n.OffReason = "A delivery failed for good and none succeeded for 3 days."
			return n
		}, "held from now on. A delivery failed for good and none succeeded for 3 days. Once"},
		{"someone, if the actor is unknown", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeHeld)
			n.ActorName = ""
			return n
		}, "Someone put the work order on hold."},
		{"since when a review waits", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeReviewWaits)
			n.About = n.TargetDate
			return n
		}, "The work has been waiting for your review since 5 April 2026, 08:30 UTC."},
		{"since when a review is overdue", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeReviewOverdue)
			n.About = n.TargetDate
			return n
		}, "waiting for its review since 5 April 2026, 08:30 UTC. Its consultants were reminded."},
		{"what was changed", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeUpdated)
			n.Changed = []string{"title", "priority", "target_date"}
			return n
		}, "Bob Stone changed the title, priority and target date."},
		{"the recipient's time zone", func() effects.NoticeEmail {
			n := noticeOf(models.NoticeReviewWaits)
			n.About, n.TimeZone = n.TargetDate, "Europe/Helsinki"
			return n
		}, "The work has been waiting for your review since 5 April 2026, 11:30 EEST."},
		{"two reasons in one message", func() effects.NoticeEmail { return noticeOf(models.NoticeAssigned, models.NoticeConsulted) },
			"Bob Stone assigned the work order to you or your team.\n\nBob Stone made you or your team its consultant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			message, err := compose(tt.email(), "https://fix.example")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(message.Text, tt.want) {
				t.Errorf("the message lacks %q:\n%s", tt.want, message.Text)
			}
		})
	}
}

func TestNoticeEmailEscapesTexts(t *testing.T) {
	n := noticeOf(models.NoticeSentBack)
	n.Title, n.ActorName, n.Reason = `<script>alert(1)</script>`, "Bob & Söhne {reason}", "5 < 6 {actor}"
	message, err := compose(n, "https://fix.example")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(message.Text, "Bob & Söhne {reason} reviewed the work and sent it back. 5 < 6 {actor}") ||
		!strings.Contains(message.Text, "Title: <script>alert(1)</script>") {
		t.Errorf("the text is changed:\n%s", message.Text)
	}
	if strings.Contains(message.HTML, "<script>") || !strings.Contains(message.HTML, "5 &lt; 6") || !strings.Contains(message.HTML, "Bob &amp; Söhne") {
		t.Errorf("the html is not escaped:\n%s", message.HTML)
	}
}

func TestNoticeEmailOmitsUnknownKinds(t *testing.T) {
	message, err := compose(noticeOf("work_order.teleported", models.NoticeHeld), "https://fix.example")
	if err != nil {
		t.Fatal(err)
	}
	if message.Subject != "Work order 17, Replace filter: on hold" || strings.Contains(message.Text, "teleported") {
		t.Errorf("subject %q:\n%s", message.Subject, message.Text)
	}
}
