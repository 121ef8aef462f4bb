package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"millwright/models"
	"millwright/service/records"
)

// shownTransitions bounds how many transitions the details list: the newest.
const shownTransitions = 30

// transitionText says the transition in one line, as in "open → in_progress, idn_…".
func transitionText(t records.Transition) string {
	return fmt.Sprintf("%s → %s, %s", cmp.Or(t.From, "created"), t.To, t.By)
}

// pageLink links to a page in the console, in Markdown.
func pageLink(page string) string { return "[its page in the console](" + page + ")" }

// details is what the Temporal UI shows of a record, in Markdown: its status, the facts,
// its transitions, and the update to use instead of cancelling the workflow, "" if it is closed.
func (w *recordWorkflow) details(status string, facts []string, update string) string {
	lines := []string{fmt.Sprintf("**%s**, as of %s", status, w.loadedAt), ""}
	for _, fact := range facts {
		lines = append(lines, "- "+fact)
	}
	lines = append(lines, "", "Transitions:", "")
	listed := w.transitions
	if n := len(listed) - shownTransitions; n > 0 {
		listed = listed[n:]
		lines = append(lines, "- … earlier ones are in the organization's log")
	}
	for _, t := range listed {
		lines = append(lines, fmt.Sprintf("- %s %s", t.At, transitionText(t)))
	}
	if w.cancelRequestedAt != nil {
		lines = append(lines, "", fmt.Sprintf("**Cancellation of this workflow was requested at %s. It changed nothing.**", w.cancelRequestedAt))
	}
	if update != "" {
		lines = append(lines, "", "Request Cancellation has no effect: use the update `"+update+"`.")
	}
	return strings.Join(append(lines, ""), "\n")
}

// reminderTopic names what the reminder is about.
func reminderTopic(r models.Reminder) string {
	switch r.Kind {
	case models.NoticeDueSoon:
		return "target date in a day"
	case models.NoticeDue:
		return "target date reached"
	case models.NoticeReviewOverdue:
		return "review overdue, to the inventory managers"
	case models.NoticeNoOneCan:
		return "no one can do it, to the inventory managers"
	default:
		return "review still waiting"
	}
}
