package console

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"millwright/models"
)

// doneBefore is for a form that was sent before.
const doneBefore = "before"

// doneTexts describe a write on the page after it (request.done).
var doneTexts = map[string]string{
	doneBefore:              "This was done before. It was not done again.",
	"saved":                 "Saved.",
	"answered":              "The answers are saved.",
	"started":               "The work is in progress.",
	"input-lost":            "You are signed in. Someone else had entered what was kept, so it is not shown.",
	"signed-out":            "You are signed out.",
	"password-changed":      "Your password is changed. All other sessions have ended.",
	"session-ended":         "Ended. The browser is signed out at its next request.",
	"unlinked":              "Unlinked. Your other sessions have ended.",
	"ways-in-removed":       "Removed. A link invites the person again.",
	"link-sent":             "The link goes to the person by e-mail.",
	"openid-required":       "Required: passwords let no one in any longer.",
	"openid-lifted":         "Passwords work again.",
	"deactivated":           "Deactivated.",
	"activated":             "Activated.",
	"read":                  "Marked as read.",
	"turned-off":            "Turned off.",
	"turned-on":             "Turned on.",
	"old-ended":             "Ended. Tokens have ended, too: the program gets new ones with the new secret.",
	"works-again":           "Turned on. Deliveries that were held are sent now, oldest first.",
	"deleted":               "Deleted.",
	"relation-ended":        "The relation has ended. Its open work orders come back within a minute.",
	"created":               "Created.",
	"added":                 "Added to the team.",
	"removed":               "Removed from the team.",
	"assigned":              "Assigned.",
	"unassigned":            "Removed from the place.",
	"test-sent":             "The test was sent. The response is below.",
	"sending":               "The deliveries are sent again now.",
	"redelivered":           "Redelivered: it goes out in a moment.",
	"all-expired":           "Nothing was redelivered.",
	"redelivering":          "Ordered. The deliveries go out one after the other; this list shows how far they are.",
	"resolved":              "Resolved. The reporter gets a notice.",
	"feedback-given":        "Sent. The inventory managers of the place get a notice.",
	"completed":             "Done. Everyone concerned is told.",
	"held":                  "On hold. It accepts no changes and no answers until someone resumes it.",
	"resumed":               "Resumed.",
	"sent-to-review":        "Done. It waits for the consultants' review, and they are told.",
	"approved":              "Approved: the work order is complete. Everyone concerned is told.",
	"approved-next":         "Approved: everyone concerned is told. Next:",
	"sent-back":             "Sent back. Its workers are told, with your comment.",
	"sent-back-next":        "Sent back: its workers are told, with your comment. Next:",
	"cancelled":             "Cancelled.",
	"moved":                 "Moved, with its contents.",
	"retired":               "Retired. It keeps its records and cannot be chosen.",
	"brought-back":          "Brought back.",
	"returned":              "Returned to the customer. Its inventory managers are told, with your reason.",
	"people-added":          "Assigned to the work order.",
	"people-added-next":     "Assigned. Next:",
	"workers-replaced":      "The workers are replaced.",
	"workers-replaced-next": "The workers are replaced. Next:",
	"person-removed":        "Removed from the work order.",
	"commented":             "Your comment is saved, and those concerned get a notice.",
	"comment-removed":       "The comment is removed.",
	"none-selected":         "Nothing was selected, so nothing was done.",
	"several-assigned":      "They are assigned to all that you selected.",
	"several-priority":      "All that you selected have the priority.",
	"several-due":           "All that you selected have the due date.",
}

// actionWords describe the actions of Log Records that words does not: "NAME …".
var actionWords = map[string]string{
	"integration.scopes_changed":      "changed the integration's scopes",
	"integration.definition_changed":  "changed the integration's organization permissions",
	"integration.secret_renewed":      "renewed the integration's secret",
	"integration.old_secret_ended":    "withdrew the integration's old secret",
	"integration.turned_off":          "turned the integration off",
	"integration.turned_on":           "turned the integration on",
	"integration.disabled_by_service": "disabled the integration for the service",
	"integration.enabled_by_service":  "enabled the integration for the service",
	"webhook.created":                 "added the webhook address",
	"webhook.secret_renewed":          "renewed the webhook address's signing secret",
	"webhook.turned_off":              "turned the webhook address off",
	"webhook.turned_on":               "turned the webhook address on",
	"webhook.tested":                  "sent a test to the webhook address",
	"delivery.redelivered":            "redelivered",
	"delivery.stopped":                "stopped a delivery",
	"work_order.updated":              "changed the work order",
	"work_order.sent_to_inspection":   "sent the work order to its review",
	"work_order.sent_back":            "sent the work order back",
	"work_order.assignees_changed":    "changed who works on the work order",
	"work_order.returned":             "returned the work order to the customer",
	"work_order.held":                 "put the work order on hold",
	"work_order.commented":            "commented on the work order",
	"work_order.comment_removed":      "removed a comment on the work order",
	"issue.created":                   "gave feedback",
	"issue.commented":                 "commented on the feedback",
	"issue.comment_removed":           "removed a comment on the feedback",
	"assignment.created":              "assigned someone to the place",
	"assignment.changed":              "changed an assignment to the place",
	"assignment.deleted":              "removed an assignment from the place",
	"person.joined":                   "accepted the invitation",
	"person.renamed":                  "changed their own name",
	"person.access_changed":           "changed the person's permissions",
	"person.password_changed":         "changed their own password",
	"person.password_reset":           "chose a new password with a link",
	"person.password_set":             "set the person's password",
	"person.reset_link_made":          "made a link for a new password",
	"person.openid_linked":            "linked an account of the OpenID provider",
	"person.openid_unlinked":          "unlinked an account of the OpenID provider",
	"person.ways_in_removed":          "removed the person's ways to sign in",
	"person.email_changed":            "changed the person's e-mail address",
	"organization.company_added":      "added a service company",
	"organization.company_ended":      "ended the relation with a service company",
	"organization.openid_required":    "required OpenID Connect for the organization's people",
	"organization.openid_lifted":      "let the organization's people sign in with passwords again",
	"form.brought_back":               "brought back the form",
	"form.question_retired":           "retired a question of the form",
	"form.question_brought_back":      "brought back a question of the form",
	"definition.brought_back":         "brought back the role",
	"node.brought_back":               "brought back the place",
	"team.member_added":               "added members to the team",
	"team.member_removed":             "removed a member from the team",
}

// topicWords are the records that actions are about, where their names are others in the console.
var topicWords = map[string]string{"node": "place", "definition": "role", "issue": "feedback", "webhook": "webhook address"}

// words returns an action of a Log Record in words: team.renamed is "renamed the team", node.code_changed
// "changed the place's code".
func words(action string) string {
	if text, ok := actionWords[action]; ok {
		return text
	}
	readable := strings.NewReplacer(".", " ", "_", " ").Replace
	topic, what, _ := strings.Cut(action, ".")
	topic = cmp.Or(topicWords[topic], readable(topic))
	if field, changed := strings.CutSuffix(what, "_changed"); changed {
		return "changed the " + topic + "'s " + readable(field)
	}
	if strings.HasSuffix(what, "ed") && !strings.ContainsAny(what, "._") {
		return what + " the " + topic
	}
	return readable(action)
}

// stringsOf returns what text returns for each entry of a list.
func stringsOf[T any](entries []T, text func(T) string) []string {
	all := make([]string, len(entries))
	for i, entry := range entries {
		all[i] = text(entry)
	}
	return all
}

// plural returns the number with the word for one or for several.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// counted is plural for a count that stops at models.MaxCounted.
func counted(n int, one, several string) string {
	if n >= models.MaxCounted {
		return "10,000 or more " + several
	}
	return plural(n, one, several)
}

// icon returns an icon of the layout's sprite. State is color and icon and word, so icons
// are hidden from screen readers.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" aria-hidden="true" focusable="false"><use href="#icon-` + template.HTMLEscapeString(name) + `"></use></svg>`) //nolint:gosec // escaped
}

// breakable lets a line break after the punctuation of a long name, such as a URL or the type
// of an event, rather than within its words.
func breakable(text string) template.HTML {
	const marks = "/._-?&=@"
	var out strings.Builder
	for from := 0; from < len(text); {
		end := len(text)
		if at := strings.IndexAny(text[from:], marks); at >= 0 {
			end = from + at
			for end < len(text) && strings.IndexByte(marks, text[end]) >= 0 {
				end++
			}
		}
		if from > 0 {
			out.WriteString("<wbr>")
		}
		out.WriteString(template.HTMLEscapeString(text[from:end]))
		from = end
	}
	return template.HTML(out.String()) //nolint:gosec // escaped
}
