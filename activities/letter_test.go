package activities

import (
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
)

// letterOf is a letter of the kinds, about a record such as they are about.
func letterOf(kinds ...models.NoticeKind) service.NoticeEmail {
	l := service.NoticeEmail{
		NoticeIDs: []int64{4711, 4712}, CreatedAt: models.TimeOf(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)),
		Organization: "Acme Facilities", PersonName: "Ann Field", PersonEmail: "ann@acme.example.com", ActorName: "Bob Stone",
	}
	for _, kind := range kinds {
		l.Kinds = append(l.Kinds, string(kind))
	}
	number, target := int64(17), models.TimeOf(time.Date(2026, time.April, 5, 8, 30, 0, 0, time.UTC))
	switch subject, _, _ := strings.Cut(string(kinds[0]), "."); subject {
	case "work_order":
		l.RecordID, l.Number, l.Title, l.Node, l.Status, l.TargetDate = "wo_01", &number, "Replace filter", "AHU 1", "in_progress", &target
	case "issue":
		l.RecordID, l.Title, l.Node, l.Status = "iss_01", "It rattles", "AHU 1", "open"
	case "webhook":
		l.RecordID, l.Integration, l.URL = "whk_01", "ERP", "https://erp.example.com/hooks"
	}
	return l
}

func TestEveryKindOfNoticeIsWritten(t *testing.T) {
	subjects := map[string]models.NoticeKind{}
	for _, kind := range models.AllNoticeKinds {
		t.Run(string(kind), func(t *testing.T) {
			l := letterOf(kind)
			message, err := compose(l)
			if err != nil {
				t.Fatal(err)
			}
			if message.ID != "notice-4711" || message.To.Name != "Ann Field" || message.To.Email != "ann@acme.example.com" {
				t.Errorf("it is %s to %s", message.ID, message.To)
			}
			about, what, said := strings.Cut(message.Subject, ": ")
			want := map[string]string{"wo_01": "Work order 17, Replace filter", "iss_01": "Feedback, It rattles", "whk_01": "Integration ERP"}[l.RecordID]
			if about != want || !said || what == "" {
				t.Errorf("the subject is %q, want %q and what happened", message.Subject, want)
			}
			if other, taken := subjects[what]; taken {
				t.Errorf("%s has the same subject: %q", other, what)
			}
			subjects[what] = kind
			for part, text := range map[string]string{"text": message.Text, "html": message.HTML} {
				for _, fact := range []string{"Hello Ann Field,", "Acme Facilities", l.Title, l.Node, strings.ReplaceAll(l.Status, "_", " "), l.URL, l.RecordID, l.Integration} {
					if !strings.Contains(text, fact) {
						t.Errorf("the %s lacks %q:\n%s", part, fact, text)
					}
				}
				if l.TargetDate != nil && !strings.Contains(text, "5 April 2026, 08:30 UTC") {
					t.Errorf("the %s lacks the target date:\n%s", part, text)
				}
				if strings.ContainsAny(text, "{}") || strings.Contains(text, "<no value>") || strings.Contains(text, "Someone") {
					t.Errorf("the %s is not filled in:\n%s", part, text)
				}
			}
		})
	}
	if len(reasons) != len(models.AllNoticeKinds) {
		t.Errorf("%d kinds are written, there are %d", len(reasons), len(models.AllNoticeKinds))
	}
}

func TestLetterSaysWhoAndWhy(t *testing.T) {
	tests := []struct {
		name   string
		letter func() service.NoticeEmail
		says   string
	}{
		{"who sent it back, and the comment", func() service.NoticeEmail {
			l := letterOf(models.NoticeSentBack)
			l.Reason = "The belt is still loose."
			return l
		}, "Bob Stone reviewed the work and sent it back. The belt is still loose."},
		{"without a comment", func() service.NoticeEmail { return letterOf(models.NoticeSentBack) },
			"Bob Stone reviewed the work and sent it back.\n"},
		{"why it was cancelled", func() service.NoticeEmail {
			l := letterOf(models.NoticeCancelled)
			l.Reason = "Ordered twice."
			return l
		}, "Bob Stone cancelled the work order. Ordered twice."},
		{"why an address was turned off", func() service.NoticeEmail {
			l := letterOf(models.NoticeWebhookOff)
			l.OffReason = "The receiver answered 410 Gone."
			return l
		}, "held from now on. The receiver answered 410 Gone. When"},
		{"someone, when nobody knows who", func() service.NoticeEmail {
			l := letterOf(models.NoticeHeld)
			l.ActorName = ""
			return l
		}, "Someone put the work order on hold."},
		{"two reasons in one letter", func() service.NoticeEmail { return letterOf(models.NoticeAssigned, models.NoticeConsulted) },
			"Bob Stone assigned the work order to you or your team.\n\nBob Stone made you or your team its consultant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			message, err := compose(tt.letter())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(message.Text, tt.says) {
				t.Errorf("it does not say %q:\n%s", tt.says, message.Text)
			}
		})
	}
}

func TestLetterTakesTextsAsTheyAre(t *testing.T) {
	l := letterOf(models.NoticeSentBack)
	l.Title, l.ActorName, l.Reason = `<script>alert(1)</script>`, "Bob & Söhne {reason}", "5 < 6 {actor}"
	message, err := compose(l)
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

func TestLetterLeavesOutKindsOfALaterVersion(t *testing.T) {
	message, err := compose(letterOf("work_order.teleported", models.NoticeHeld))
	if err != nil {
		t.Fatal(err)
	}
	if message.Subject != "Work order 17, Replace filter: on hold" || strings.Contains(message.Text, "teleported") {
		t.Errorf("subject %q:\n%s", message.Subject, message.Text)
	}
}
