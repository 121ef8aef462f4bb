package activities

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"millwright/mail"
	"millwright/models"
	"millwright/service/effects"
)

//go:embed notice.txt notice.html
var noticeFiles embed.FS

var (
	noticeText = texttemplate.Must(texttemplate.ParseFS(noticeFiles, "notice.txt"))
	noticeHTML = template.Must(template.ParseFS(noticeFiles, "notice.html"))
)

// reasons has the end of the subject and the sentence of each kind of notice, in
// which {actor}, {fields}, {reason} and {since} are replaced.
var reasons = map[models.NoticeKind]struct{ subject, sentence string }{
	models.NoticeAssigned:     {"assigned to you", "{actor} assigned the work order to you or your team."},
	models.NoticeConsulted:    {"you are its consultant", "{actor} made you or your team its consultant: you review it when the work is done."},
	models.NoticeUnassigned:   {"no longer yours", "{actor} removed you or your team from the work order."},
	models.NoticeReturned:     {"returned", "{actor} returned the work order: the service company does not do it.{reason}"},
	models.NoticeStarted:      {"in progress", "{actor} began to work on it."},
	models.NoticeUpdated:      {"changed", "{actor} changed the {fields}."},
	models.NoticeCompleted:    {"complete", "{actor} completed the work order."},
	models.NoticeReviewWanted: {"waits for your review", "{actor} completed the work, which waits for your review."},
	models.NoticeInReview:     {"in review", "{actor} completed the work, which waits for its review."},
	models.NoticeSentBack:     {"sent back", "{actor} reviewed the work and sent it back.{reason}"},
	models.NoticeCancelled:    {"cancelled", "{actor} cancelled the work order.{reason}"},
	models.NoticeHeld:         {"on hold", "{actor} put the work order on hold."},
	models.NoticeResumed:      {"resumed", "{actor} resumed the work order."},
	models.NoticeDueSoon:      {"due tomorrow", "Its target date is a day away."},
	models.NoticeDue:          {"due now", "Its target date has come and the work is still open."},
	models.NoticeReviewWaits:  {"still waits for your review", "The work has been waiting for your review{since}."},
	models.NoticeReviewOverdue: {
		"its review is overdue",
		"The work is done and has been waiting for its review{since}. Its consultants were reminded. Talk to them, or name another consultant.",
	},
	models.NoticeNoOneCan: {
		"no one can do it",
		"No one who is assigned can do what comes next. Assign someone else.",
	},
	// Without the comment: an administrator may remove it, and who gets the notice may not read it any longer.
	models.NoticeCommented:        {"new comment", "{actor} commented on the work order."},
	models.NoticeFeedbackComment:  {"a comment on the feedback", "{actor} commented on the feedback."},
	models.NoticeFeedbackOpened:   {"new feedback", "{actor} gave feedback."},
	models.NoticeFeedbackResolved: {"resolved", "{actor} resolved the feedback."},
	models.NoticeWebhookFailing: {
		"a webhook address is failing",
		"No delivery to the address has succeeded for a day. Failed deliveries are retried on their schedule. If one fails for the last time and none has succeeded within the shut-off period, the address is turned off.",
	},
	models.NoticeWebhookOff: {
		"a webhook address was turned off",
		"Deliveries to the address are held from now on.{reason} Once the receiver works again, turn the address on and redeliver the failed and held deliveries.",
	},
	models.NoticeWebhookSecretRenewed: {"a signing secret was renewed", "{actor} renewed the signing secret of the address."},
	models.NoticeRoleChanged:          {"the role was changed", "{actor} changed what {identity} may do in the organization."},
	models.NoticeSignInAdded:          {"a new way to sign in", "{identity} has a new way to sign in."},
	models.NoticeSignInRemoved:        {"ways to sign in were removed", "{actor} removed ways to sign in from {identity}."},
	models.NoticePasswordChanged:      {"the password was changed", "The password of {identity} was changed."},
	models.NoticeEmailChanged:         {"the e-mail address was changed", "{actor} changed the e-mail address of {identity}. Links for signing in go to the new address from now on."},
	models.NoticeSecretRenewed:        {"the secret was renewed", "{actor} renewed the secret of the integration {identity}."},
	models.NoticeOwnersChanged:        {"the owners were changed", "{actor} changed who owns the integration {identity}. Its owners can renew its secret and read what it reads."},
	models.NoticeOwnerLost: {
		"an owner was lost",
		"An owner of the integration {identity} lost that role and may know its secret. Renew the secret, so that only its program and its owners know it.",
	},
	models.NoticeTeamAccess:     {"someone joined the team", "{actor} added someone to the team {identity}, who gets the team's permissions in the inventory."},
	models.NoticeAccessChanged:  {"access was changed", "Roles, secrets or ways to sign in were changed. The log has the details."},
	models.NoticeOpenIDRequired: {"OpenID Connect is required", "The people of {identity} have to sign in with OpenID Connect from now on."},
	models.NoticeOperated: {
		"an operator acted as you",
		"An operator of the service acted as you. The history and the log show “(operator)” after your name where it happened.",
	},
	models.NoticeOpenIDLifted: {"OpenID Connect is no longer required", "The people of {identity} no longer have to sign in with OpenID Connect."},
}

// unreadable is the only sentence about something that the person may not read, or no longer.
const unreadable = "You may not read what this is about, so this message does not describe it."

// mailView is what the templates show.
type mailView struct {
	Greeting string
	Items    []mailItem
	// Unlisted counts the further things that it is about, Inbox is the URL that lists them.
	Unlisted int
	Inbox    string
}

// mailItem is a record, or something else that notices are about, with what happened.
type mailItem struct {
	// Subject names it.
	Subject string
	// topic is a key of topics.
	topic string
	// happened are the ends of the subject of an e-mail about it alone.
	happened  []string
	Sentences []string
	Facts     []fact
	// Page is the URL of its page in the console.
	Page string
}

type fact struct{ Name, Value string }

// maxListedItems limits what an e-mail lists.
const maxListedItems = 50

// compose renders the notices that wait for a person as an e-mail: about one thing with its facts, about
// several with a line for each. It fails if no notice is of a known kind.
func compose(m effects.Mail, publicURL string) (mail.Message, error) {
	view := mailView{Greeting: mail.Unlinked(m.PersonName), Items: itemsOf(m, publicURL), Inbox: effects.InboxURL(publicURL)}
	if len(view.Items) == 0 {
		return mail.Message{}, errors.New("no notice of a known kind")
	}
	subject := subjectOf(view.Items)
	if more := len(view.Items) - maxListedItems; more > 0 {
		view.Items, view.Unlisted = view.Items[:maxListedItems], more
	}
	var text, html bytes.Buffer
	if err := noticeText.Execute(&text, view); err != nil {
		return mail.Message{}, fmt.Errorf("render notices: %w", err)
	}
	if err := noticeHTML.Execute(&html, view); err != nil {
		return mail.Message{}, fmt.Errorf("render notices: %w", err)
	}
	return mail.Message{
		ID:      fmt.Sprintf("notice-%d", m.FirstID()),
		To:      mail.Address{Name: m.PersonName, Email: m.PersonEmail},
		Subject: subject,
		Text:    text.String(),
		HTML:    html.String(),
	}, nil
}

// itemsOf returns what the notices are about, in the order of the first notice of each. What happened
// several times is told once.
func itemsOf(m effects.Mail, publicURL string) (items []mailItem) {
	at := map[string]int{}
	for _, n := range m.Notices {
		n = unlinked(n)
		reason, known := reasons[n.Kind]
		if !known {
			continue // a kind of a later version: the inbox shows it
		}
		i, listed := at[n.RecordID]
		if !listed {
			i = len(items)
			at[n.RecordID] = i
			items = append(items, mailItem{})
		}
		item := &items[i]
		item.topic, _, _ = strings.Cut(string(n.Kind), ".")
		item.Subject, item.Facts, item.Page = nameOf(n), factsOf(n, m.TimeZone), n.PageURL(publicURL)
		item.happened = appendNew(item.happened, reason.subject)
		sentence := unreadable
		if n.Readable {
			sentence = fill(reason.sentence, n, m.TimeZone)
		}
		item.Sentences = appendNew(item.Sentences, sentence)
	}
	return items
}

// appendNew appends the string unless it is there.
func appendNew(all []string, one string) []string {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

// subjectOf is the subject of an e-mail about the items.
func subjectOf(items []mailItem) string {
	if len(items) == 1 {
		return items[0].Subject + ": " + strings.Join(items[0].happened, ", ")
	}
	what := "work orders"
	for _, item := range items {
		if item.topic != "work_order" {
			what = "things"
		}
	}
	return fmt.Sprintf("News about %d %s", len(items), what)
}

// unlinked returns the notice with strings that mail programs do not turn into links: people
// could use a name to send others to their pages.
func unlinked(n effects.MailedNotice) effects.MailedNotice {
	for _, text := range []*string{
		&n.Organization, &n.Title, &n.Node, &n.Reason, &n.ActorName, &n.Integration, &n.Identity, &n.URL, &n.OffReason,
	} {
		*text = mail.Unlinked(*text)
	}
	return n
}

// topics are what notices are about, by the beginning of their kinds.
var topics = map[string]string{
	"work_order": "A work order", "issue": "Feedback", "webhook": "A webhook address", "person": "A person",
	"integration": "An integration", "team": "A team", "organization": "The organization", "operator": "Your account",
}

// nameOf names the record for people who may read it.
func nameOf(n effects.MailedNotice) string {
	switch {
	case !n.Readable:
		topic, _, _ := strings.Cut(string(n.Kind), ".")
		return topics[topic]
	case n.Number != nil:
		return fmt.Sprintf("Work order %d, %s", *n.Number, n.Title)
	case n.Integration != "":
		return "Integration " + n.Integration
	case n.IdentityKind == string(models.KindIntegration), n.IdentityKind == string(models.KindTeam):
		return strings.ToUpper(n.IdentityKind[:1]) + n.IdentityKind[1:] + " " + n.Identity
	case n.Identity != "":
		return n.Identity
	default:
		return "Feedback, " + n.Title
	}
}

func fill(sentence string, n effects.MailedNotice, zone string) string {
	actor, reason := n.ActorName, n.Reason+n.OffReason
	if actor == "" {
		actor = "Someone"
	}
	if reason != "" {
		reason = " " + reason
	}
	since := ""
	if n.About != nil {
		since = " since " + formatTime(*n.About, zone)
	}
	fields := strings.ReplaceAll(strings.Join(n.Changed, ", "), "_", " ")
	if last := strings.LastIndex(fields, ", "); last >= 0 {
		fields = fields[:last] + " and" + fields[last+1:]
	}
	return strings.NewReplacer("{actor}", actor, "{identity}", n.Identity, "{reason}", reason, "{since}", since, "{fields}", cmp.Or(fields, "work order")).Replace(sentence)
}

// formatTime shows a time in the recipient's time zone.
func formatTime(at models.Time, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format("2 January 2006, 15:04 MST")
}

func factsOf(n effects.MailedNotice, zone string) []fact {
	facts := []fact{{"Organization", n.Organization}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	if n.Number != nil {
		add("Work order", fmt.Sprintf("%d", *n.Number))
	}
	add("Title", n.Title)
	add("Where", n.Node)
	add("Status", strings.ReplaceAll(n.Status, "_", " "))
	if n.TargetDate != nil {
		add("Target date", formatTime(*n.TargetDate, zone))
	}
	add("Integration", n.Integration)
	add("Address", n.URL)
	if n.Readable {
		add("Id", n.RecordID)
	}
	return facts
}
