package imports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"millwright/models"
	"millwright/service/store"
)

// What the fields are called that relate an entity to the one whose key follows.
const (
	fieldAssignment     = "assignment of "
	fieldServiceCompany = "service company "
)

// fieldRetired is the field whose changes the log shows as retired or brought back.
const fieldRetired = "retired"

// What an import does to an entity.
const (
	Created = "created"
	Changed = "changed"
)

// Difference is a difference between a file and what is stored: an entity to
// create, or a field to change (docs/import.md).
type Difference struct {
	// Kind and Key name the entity.
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// Change is Created or Changed.
	Change string `json:"change"`
	// Field is the changed field, "" if the entity is created.
	Field string `json:"field,omitempty"`
	// From is the stored value and To the file's: a string, a number, a boolean, a list
	// of strings, or nil. Both are nil for hidden fields.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
	// Hidden fields hold secrets or personal data.
	Hidden bool `json:"hidden,omitempty"`
	// Conflict is set if a person or a command changed the field, or deleted the
	// entity, since the last import.
	Conflict bool `json:"conflict"`
	// ids is set if the values are ids.
	ids bool
	// entry is the entity.
	entry *importEntry
}

// hide leaves out the values. It may be called without a difference.
func (d *Difference) hide() {
	if d != nil {
		d.From, d.To, d.Hidden = nil, nil, true
	}
}

// names marks the values as ids, to be shown by their keys. It may be called without a
// difference.
func (d *Difference) names() {
	if d != nil {
		d.ids = true
	}
}

// Stored formats the stored value for people, on one line. A list shows what the file
// would remove from it.
func (d *Difference) Stored() string { return d.format(d.From, d.To, "-") }

// Given formats the file's value for people, on one line. A list shows what the file
// would add to it.
func (d *Difference) Given() string { return d.format(d.To, d.From, "+") }

// Bounds of a value that is shown to people, in characters and items.
const (
	maxShownText  = 80
	maxShownItems = 3
)

func (d *Difference) format(value, other any, sign string) string {
	switch v := value.(type) {
	case nil:
		if d.Hidden {
			return "(not shown)"
		}
		return "-"
	case string:
		if text := []rune(v); len(text) > maxShownText {
			return strconv.Quote(string(text[:maxShownText])) + "…"
		}
		return strconv.Quote(v)
	case []string:
		than, _ := other.([]string)
		var only []string
		for _, s := range v {
			if !slices.Contains(than, s) {
				only = append(only, sign+strings.Trim(strconv.Quote(s), `"`))
			}
		}
		if more := len(only) - maxShownItems; more > 0 {
			only = append(only[:maxShownItems], fmt.Sprintf("and %d more", more))
		}
		return strings.Join(only, " ")
	}
	return fmt.Sprint(value)
}

// String returns the difference as a sentence for people.
func (d *Difference) String() string {
	what := fmt.Sprintf("%s %q", d.Kind, d.Key)
	switch {
	case d.Change == Created && d.Conflict:
		return what + ": it was deleted; the file creates it again"
	case d.Change == Created:
		return what + ": the file creates it"
	case d.Hidden:
		return what + ": the file has another " + d.Field
	}
	return fmt.Sprintf("%s, %s: %s is stored, the file has %s", what, d.Field, d.describe(d.From), d.describe(d.To))
}

// describe formats a value by itself: of a list, all of it.
func (d *Difference) describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case []string:
		return strconv.Quote(strings.Join(v, ", "))
	}
	return d.format(value, nil, "")
}

// Comparison is what an import of a file would do.
type Comparison struct {
	// OrganizationID is "" if the import would create the organization.
	OrganizationID string
	Differences    []*Difference
}

// Conflicts returns the differences for which an import without overwriting is rejected.
func (c Comparison) Conflicts() []*Difference { return conflicts(c.Differences) }

func conflicts(differences []*Difference) []*Difference {
	var found []*Difference
	for _, d := range differences {
		if d.Conflict {
			found = append(found, d)
		}
	}
	return found
}

// ConflictError rejects an import that would undo what a person or a command
// changed since the last import.
type ConflictError struct{ Conflicts []*Difference }

// Error returns the conflicts, one per line.
func (e *ConflictError) Error() string {
	lines := []string{"the file would undo what was changed since the last import (see --dry-run and --overwrite):"}
	for _, d := range e.Conflicts {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n  ")
}

// shownValue returns a field's value as a difference shows it.
func shownValue(value any) any {
	switch v := value.(type) {
	case *string:
		if v == nil {
			return nil
		}
		return *v
	case models.TextArray:
		return []string(v)
	case models.QuestionType:
		return string(v)
	}
	return value
}

// logTopics are what Log Records of differences are about.
var logTopics = map[string]string{
	keyDefinition: "definition", keyOrganizationDefinition: "definition", keyNode: "node", keyQuestion: "form", keyOption: "form",
}

// logActions are the actions of differences for which the console and commands have one.
var logActions = map[string]string{
	"integration.name_changed": "integration.renamed", "integration.client_secret_changed": "integration.secret_renewed",
	"integration.organization_definition_changed": "integration.definition_changed",
	"person.admin_changed":                        "person.access_changed", "person.organization_definition_changed": "person.access_changed",
	"node.parent_changed": "node.moved", "team.name_changed": "team.renamed", "webhook.secret_changed": "webhook.secret_renewed",
	"webhook.url_changed": "webhook.changed", "webhook.events_changed": "webhook.changed",
}

// logAction returns the action of the difference's Log Record.
func (d *Difference) logAction() string {
	topic, made := cmp.Or(logTopics[d.Kind], d.Kind), ".changed"
	if d.From == nil {
		made = ".created"
	}
	switch {
	case d.Change == Created:
		return topic + ".created"
	case strings.HasPrefix(d.Field, fieldAssignment):
		return "assignment" + made
	case strings.HasPrefix(d.Field, fieldServiceCompany):
		return "organization.company_added"
	case d.Field == fieldRetired:
		what := "brought_back"
		if d.To == true {
			what = "retired"
		}
		if d.Kind == keyQuestion { // it is a part of its form
			what = "question_" + what
		}
		return topic + "." + what
	}
	action := topic + "." + strings.ReplaceAll(d.Field, ".", "_") + "_changed"
	return cmp.Or(logActions[action], action)
}

// log writes a Log Record for each difference.
func (r *importRun) log() error {
	var rows []*models.LogEntry
	for _, d := range r.result.Differences {
		rows = append(rows, store.NewLogEntry(store.Import(), r.result.OrganizationID, d.logAction(), d.entry.id, r.At))
	}
	return create(r.DB, rows)
}
