package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/records"
)

// changeLine is a change of a record as a sentence: "WHO WHAT", at a time.
type changeLine struct {
	Who  author
	What string
	// Quote is what the person wrote about it: a comment, the reason of a cancellation.
	Quote string
	// Comment is the id of a comment, whose text was removed if there is no Quote.
	Comment string
	At      moment
	// Last is true for the newest line, to which a page links.
	Last bool
}

// author is who made a change: the name at the time, the present one if it differs, and the page
// of a person or an integration, "" if the reader may not open it ({{template "author" .}}).
type author struct{ Name, Now, URL string }

// authorOf returns who made a change of a record.
func (r *request) authorOf(a records.Author) author {
	who := author{Name: cmp.Or(valueOf(a.ActorName), "Someone"), Now: valueOf(a.ActorNow)}
	if kind := records.Kind(a.ActorKind); a.ActorOpens && r.opens(kind) {
		who.URL = recordURL(kind, a.ActorID)
	}
	return who
}

// historyWords are what changes are told with: names by identity id, and the labels of
// questions by their ids.
type historyWords struct{ names, questions map[string]string }

// changeLines returns the changes as sentences.
func (r *request) changeLines(changes []records.Change, known historyWords) []changeLine {
	lines := make([]changeLine, len(changes))
	for i, change := range changes {
		lines[i] = changeLine{
			Who: r.authorOf(change.Author()), What: r.changeText(change, known), At: r.moment(change.At), Quote: quoteOf(change), Comment: change.CommentID(),
		}
	}
	return lines
}

// changeText describes a change: "changed the title from “A” to “B”".
func (r *request) changeText(change records.Change, known historyWords) string {
	switch change.Action {
	case string(models.EventWorkOrderUpdated):
		if text := listed(r.fieldTexts(change)); text != "" {
			return "changed " + text
		}
	case string(models.EventWorkOrderAssigneesChanged):
		if text := listed(roleTexts(change, known)); text != "" {
			return text
		}
	case "work_order.answered":
		if text := answeredText(change, known); text != "" {
			return "answered " + text
		}
		return "started the work"
	}
	return words(change.Action)
}

// changedFields are the fields of a work order that a person changes, as sentences name them.
var changedFields = []struct {
	name, text string
	// long is true if the values are too long for a sentence.
	long bool
}{
	{"title", "the title", false}, {"description", "the description", true}, {"priority", "the priority", false},
	{"target_date", "the target date", false}, {"external_id", "the external id", false},
}

func (r *request) fieldTexts(change records.Change) []string {
	var clauses []string
	for _, field := range changedFields {
		values, changed := change.Changes[field.name]
		if !changed {
			continue
		}
		text := field.text
		from, to := r.valueText(field.name, values.From), r.valueText(field.name, values.To)
		switch {
		case field.long:
		case to == "":
			text += " from " + from + " to none"
		case from == "":
			text += " to " + to
		default:
			text += " from " + from + " to " + to
		}
		clauses = append(clauses, text)
	}
	return clauses
}

// valueText returns a value in a sentence, or "" if absent.
func (r *request) valueText(field string, value json.RawMessage) string {
	if field == "target_date" {
		var at *models.Time
		if json.Unmarshal(value, &at) == nil && at != nil {
			return r.moment(*at).Exact
		}
		return ""
	}
	text := textOf(value)
	if text == "" || field == "priority" {
		return text
	}
	return quoted(text)
}

// textOf returns a JSON string, "" for anything else.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

func quoted(text string) string { return "“" + text + "”" }

// roleTexts describe the people added and removed: "added Bob Stone as worker".
func roleTexts(change records.Change, known historyWords) []string {
	var clauses []string
	for _, role := range []struct{ field, one, several string }{{"assignees", "worker", "workers"}, {"consultants", "consultant", "consultants"}} {
		values, changed := change.Changes[role.field]
		if !changed {
			continue
		}
		before, after := listOf(values.From), listOf(values.To)
		for _, part := range []struct {
			verb string
			ids  []string
		}{{"added", without(after, before)}, {"removed", without(before, after)}} {
			if len(part.ids) == 0 {
				continue
			}
			as := role.one
			if len(part.ids) > 1 {
				as = role.several
			}
			clauses = append(clauses, part.verb+" "+listed(known.namesOf(part.ids))+" as "+as)
		}
	}
	return clauses
}

func (w historyWords) namesOf(ids []string) []string {
	return stringsOf(ids, func(id string) string { return cmp.Or(w.names[id], id) })
}

// listOf returns a JSON list of strings, nil for anything else.
func listOf(value json.RawMessage) []string {
	var list []string
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return list
}

// without returns the elements of a list that are not in the other.
func without(list, other []string) []string {
	var rest []string
	for _, element := range list {
		if !slices.Contains(other, element) {
			rest = append(rest, element)
		}
	}
	return rest
}

// shownQuestions is the maximum of questions that a sentence names.
const shownQuestions = 3

// answeredText names the questions that were answered, or counts them.
func answeredText(change records.Change, known historyWords) string {
	var labels []string
	n := 0
	for field := range change.Changes {
		id, answer := strings.CutPrefix(field, "answers.")
		if !answer {
			continue
		}
		n++
		if label, found := known.questions[id]; found {
			labels = append(labels, quoted(label))
		}
	}
	slices.Sort(labels)
	switch {
	case n == 0:
		return ""
	case len(labels) < n:
		return plural(n, "question", "questions")
	case n > shownQuestions:
		return listed(append(labels[:shownQuestions], plural(n-shownQuestions, "other question", "other questions")))
	}
	return listed(labels)
}

// quoteOf returns what the person wrote about the change.
func quoteOf(change records.Change) string {
	for _, field := range []string{"comment", "cancel_reason"} {
		if text := textOf(change.Changes[field].To); text != "" {
			return text
		}
	}
	return ""
}

// listed joins strings: "a, b and c".
func listed(clauses []string) string {
	if len(clauses) < 2 {
		return strings.Join(clauses, "")
	}
	last := len(clauses) - 1
	return strings.Join(clauses[:last], ", ") + " and " + clauses[last]
}

// maxChangesShown limits the changes listed on a form that happened since it was shown.
const maxChangesShown = 5

// addChangesSince adds to a form that was rejected what was changed since it was shown. If the
// history shows no change, such as after a worker was renamed, the form's message stays.
func (r *request) addChangesSince(record string, f *form) {
	var seen models.Time
	if f.Seen == "" || seen.UnmarshalText([]byte(f.Seen)) != nil {
		return
	}
	page, err := r.console.service.Records.HistoryPage(r.ctx(), r.actor(), record, 0, maxChangesShown)
	if err != nil {
		return
	}
	if since := page.Since(seen); len(since) > 0 {
		f.Changed.Changes = r.changeLines(since, historyWords{names: page.Names})
	}
}
