package activities

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"

	"millwright/mail"
	"millwright/models"
	"millwright/service"
)

//go:embed letter.txt letter.html
var letterFiles embed.FS

var (
	letterText = texttemplate.Must(texttemplate.ParseFS(letterFiles, "letter.txt"))
	letterHTML = template.Must(template.ParseFS(letterFiles, "letter.html"))
)

// reasons are what each kind of notice says: the subject's verb and a sentence.
// {actor} and {reason} stand for who acted and why.
var reasons = map[models.NoticeKind]struct{ subject, sentence string }{
	models.NoticeAssigned:         {"assigned to you", "{actor} assigned the work order to you or your team."},
	models.NoticeConsulted:        {"you are its consultant", "{actor} made you or your team its consultant: you review it when it is done."},
	models.NoticeUnassigned:       {"no longer yours", "{actor} took the work order from you or your team."},
	models.NoticeCompleted:        {"complete", "The work order is complete."},
	models.NoticeReviewWanted:     {"waits for your review", "The work is done and waits for your review."},
	models.NoticeSentBack:         {"sent back", "{actor} reviewed the work and sent it back.{reason}"},
	models.NoticeCancelled:        {"cancelled", "{actor} cancelled the work order.{reason}"},
	models.NoticeHeld:             {"on hold", "{actor} put the work order on hold."},
	models.NoticeResumed:          {"goes on", "{actor} took the work order off hold."},
	models.NoticeDueSoon:          {"due tomorrow", "Its target date is a day away."},
	models.NoticeDue:              {"due now", "Its target date is here and the work is open."},
	models.NoticeReviewWaits:      {"still waits for your review", "The work has been waiting for your review for two days."},
	models.NoticeFeedbackOpened:   {"new feedback", "{actor} gave feedback."},
	models.NoticeFeedbackResolved: {"resolved", "{actor} resolved the feedback."},
	models.NoticeWebhookFailing: {
		"a webhook address is failing",
		"No delivery to the address has succeeded for a day. Deliveries are tried again along their schedule; when one fails for good and none has succeeded for the shut-off period, the address is turned off.",
	},
	models.NoticeWebhookOff: {
		"a webhook address was turned off",
		"Deliveries to the address are held from now on.{reason} When the receiver is mended, turn the address on again and have the failed and held ones sent.",
	},
}

// letterView is what the templates show.
type letterView struct {
	Greeting  string
	Sentences []string
	Facts     []fact
}

type fact struct{ Name, Value string }

// compose writes the letter as an e-mail.
func compose(l service.NoticeEmail) (mail.Message, error) {
	view := letterView{Greeting: l.PersonName, Facts: factsOf(l)}
	subject := ""
	for _, kind := range l.Kinds {
		reason, known := reasons[models.NoticeKind(kind)]
		if !known {
			continue // a kind of a later version; the inbox has it
		}
		if subject == "" {
			subject = reason.subject
		}
		view.Sentences = append(view.Sentences, fill(reason.sentence, l))
	}
	if subject == "" {
		return mail.Message{}, errors.New("the letter says nothing")
	}
	var text, html bytes.Buffer
	if err := letterText.Execute(&text, view); err != nil {
		return mail.Message{}, fmt.Errorf("write a letter: %w", err)
	}
	if err := letterHTML.Execute(&html, view); err != nil {
		return mail.Message{}, fmt.Errorf("write a letter: %w", err)
	}
	return mail.Message{
		ID:      fmt.Sprintf("notice-%d", l.NoticeIDs[0]),
		To:      mail.Address{Name: l.PersonName, Email: l.PersonEmail},
		Subject: about(l) + ": " + subject,
		Text:    text.String(),
		HTML:    html.String(),
	}, nil
}

// about names the record for people.
func about(l service.NoticeEmail) string {
	switch {
	case l.Number != nil:
		return fmt.Sprintf("Work order %d, %s", *l.Number, l.Title)
	case l.Integration != "":
		return "Integration " + l.Integration
	default:
		return "Feedback, " + l.Title
	}
}

func fill(sentence string, l service.NoticeEmail) string {
	actor, reason := l.ActorName, l.Reason+l.OffReason
	if actor == "" {
		actor = "Someone"
	}
	if reason != "" {
		reason = " " + reason
	}
	return strings.NewReplacer("{actor}", actor, "{reason}", reason).Replace(sentence)
}

func factsOf(l service.NoticeEmail) []fact {
	facts := []fact{{"Organization", l.Organization}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	if l.Number != nil {
		add("Work order", fmt.Sprintf("%d", *l.Number))
	}
	add("Title", l.Title)
	add("Where", l.Node)
	add("Status", strings.ReplaceAll(l.Status, "_", " "))
	if l.TargetDate != nil {
		add("Target date", l.TargetDate.Format("2 January 2006, 15:04 UTC"))
	}
	add("Integration", l.Integration)
	add("Address", l.URL)
	add("Id", l.RecordID)
	return facts
}
