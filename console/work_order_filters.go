package console

import (
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/records"
)

// shownWorkOrders is a search of work orders as URLs have it.
type shownWorkOrders struct{ records.WorkOrderSearch }

// workOrderSearch reads the filters of the URL.
func (r *request) workOrderSearch() shownWorkOrders {
	text := func(name string) string { return models.Trim(r.Query(name)) }
	status, toDo := text("status"), false
	switch status {
	case statusToDo:
		status, toDo = "", true
	case statusAny:
		status = ""
	}
	q := shownWorkOrders{records.WorkOrderSearch{
		Text: text("q"), Status: models.WorkOrderStatus(status), ToDo: toDo, Priority: models.Priority(text("priority")),
		Node: text("node"), OnlyNode: text("only") != "" && text("node") != "", Assignee: text("assignee"), Creator: text("by"), Customer: text("customer"),
		CreatorKind: models.IdentityKind(text("kind")), ExternalID: text("external"), Due: records.Due(text("due")), Review: records.ReviewWait(text("review")),
		NoOneCan: text("who") == whoNoOne, Incoming: text("who") == whoIncoming,
	}}
	// Without filters the list shows work orders to be done; a search finds all.
	if q.WorkOrderSearch == (records.WorkOrderSearch{}) && text("status") == "" {
		q.ToDo = true
	}
	q.ByDue = q.InProcess() && text("sort") != sortNewest
	return q
}

// inZone returns the search with the days of the person's zone.
func (q shownWorkOrders) inZone(r *request) records.WorkOrderSearch {
	if q.Due != "" {
		q.Zone = r.viewer.TimeZone
	}
	return q.WorkOrderSearch
}

// sortNewest is the order of work orders in process that is not by due.
const sortNewest = "newest"

// statusToDo stands for the statuses in which workers have something to do.
const statusToDo = "to_do"

// statusAny stands for all statuses where no filter is set.
const statusAny = "any"

// whoNoOne stands for work orders that no one can do.
const whoNoOne = "no_one"

// whoIncoming stands for customers' work orders that none of a service company's people has.
const whoIncoming = "incoming"

// status is the search's status as URLs have it.
func (q shownWorkOrders) status() string {
	if q.ToDo {
		return statusToDo
	}
	q.ByDue = false
	if q.WorkOrderSearch == (records.WorkOrderSearch{}) {
		return statusAny
	}
	return string(q.Status)
}

// who returns the parameter who.
func (q shownWorkOrders) who() string {
	if q.Incoming {
		return whoIncoming
	}
	return when(q.NoOneCan, whoNoOne)
}

// parameters are the search as URL parameters, in pairs of name and value.
func (q shownWorkOrders) parameters() []string {
	return []string{
		"q", q.Text, "status", q.status(), "priority", string(q.Priority), "node", q.Node, "only", when(q.OnlyNode, "yes"), "assignee", q.Assignee,
		"by", q.Creator, "customer", q.Customer, "kind", string(q.CreatorKind), "external", q.ExternalID, "due", string(q.Due), "review", string(q.Review),
		"who", q.who(), "sort", when(q.InProcess() && !q.ByDue, sortNewest),
	}
}

// when returns the value of a parameter that is set on a condition.
func when(condition bool, value string) string {
	if condition {
		return value
	}
	return ""
}

// url returns the search's page with more parameters.
func (q shownWorkOrders) url(more ...string) string {
	if q.WorkOrderSearch == searchToDo { // what the list shows without filters
		return linkTo("/work-orders", more...)
	}
	return linkTo("/work-orders", append(q.parameters(), more...)...)
}

// with returns the search with a change.
func (q shownWorkOrders) with(change func(*shownWorkOrders)) shownWorkOrders {
	change(&q)
	return q
}

// workOrderFilterView is what the filters show.
type workOrderFilterView struct {
	Text                    string
	Status, Priority, Due   []option
	Node, Assignee, Creator string
	// Customer is a filter of a list with customers' work orders, for which HasCustomers is true.
	Customer     string
	HasCustomers bool
	Problems     wrongFilters
	// Kept are parameters without a field: the order, and filters of links.
	Kept []namedValue
}

func workOrderFilterViewOf(q shownWorkOrders) workOrderFilterView {
	statuses, priorities := []option{{Label: "To be done, or any with filters"}, {Value: statusAny, Label: "Any"}, {Value: statusToDo, Label: "To be done"}}, []option{{Label: "Any"}}
	for _, status := range models.WorkOrderStatuses {
		statuses = append(statuses, option{Value: string(status), Label: workOrderMarks[status].Text})
	}
	for _, priority := range models.Priorities {
		priorities = append(priorities, option{Value: string(priority), Label: priorityMarks[priority].Text})
	}
	dues := []option{{Label: "Any time"}}
	for _, due := range records.Dues {
		dues = append(dues, option{Value: string(due), Label: dueTexts[due]})
	}
	var kept []namedValue
	for i, all := 0, q.parameters(); i < len(all); i += 2 {
		if all[i+1] != "" && slices.Contains([]string{"only", "kind", "external", "review", "who", "sort"}, all[i]) {
			kept = append(kept, namedValue{all[i], all[i+1]})
		}
	}
	return workOrderFilterView{
		Text: q.Text, Status: choose(statuses, when(q.WorkOrderSearch != searchToDo, q.status())), Priority: choose(priorities, string(q.Priority)),
		Due: choose(dues, string(q.Due)), Node: q.Node, Assignee: q.Assignee, Creator: q.Creator, Customer: q.Customer, Kept: kept,
	}
}

// Searches that people often make.
var (
	searchToDo = records.WorkOrderSearch{ToDo: true, ByDue: true}
	searchMine = records.WorkOrderSearch{Assignee: records.SearchMe, ToDo: true, ByDue: true}
)

// dueTexts name when work orders are due.
var dueTexts = map[records.Due]string{
	records.DueOverdue: "Overdue", records.DueToday: "Today", records.DueWeek: "This week", records.DueLater: "Later or without a date",
}

// workOrderShortcuts link to searches that people often make.
func (r *request) workOrderShortcuts(q shownWorkOrders) []shortcut {
	due := func(d records.Due) records.WorkOrderSearch { return records.WorkOrderSearch{Due: d, ByDue: true} }
	var all []shortcut
	for _, s := range []struct {
		text   string
		search records.WorkOrderSearch
	}{
		{"To be done", searchToDo},
		{"Mine", searchMine},
		{"Overdue", due(records.DueOverdue)},
		{"Today", due(records.DueToday)},
		{"This week", due(records.DueWeek)},
		{"To review", records.SearchReviews},
		{"Incoming", records.SearchIncoming},
		{"All", records.WorkOrderSearch{}},
	} {
		if s.search == records.SearchIncoming && !r.may(models.GrantIncomingWorkOrders) {
			continue
		}
		all = append(all, shortcut{s.text, shownWorkOrders{s.search}.url(), q.WorkOrderSearch == s.search})
	}
	return all
}

// namedFilters name the search's filters in words, each with the search without it.
func (r *request) namedFilters(q shownWorkOrders, names records.SearchNames) []shortcut {
	var named []shortcut
	add := func(set bool, text string, remove func(*shownWorkOrders)) {
		if set {
			without := q.with(remove)
			without.ByDue = without.ByDue && without.InProcess()
			named = append(named, shortcut{Text: text, URL: without.url()})
		}
	}
	add(q.Text != "", "with “"+q.Text+"”", func(q *shownWorkOrders) { q.Text = "" })
	add(q.Status != "", "status "+workOrderMarks[q.Status].Text, func(q *shownWorkOrders) { q.Status = "" })
	add(q.ToDo, "to be done", func(q *shownWorkOrders) { q.ToDo = false })
	add(q.Priority != "", "priority "+priorityMarks[q.Priority].Text, func(q *shownWorkOrders) { q.Priority = "" })
	add(q.Due != "", "due: "+dueTexts[q.Due], func(q *shownWorkOrders) { q.Due = "" })
	where := "at " + nameOr(names.Nodes, q.Node)
	if !q.OnlyNode {
		where += " and its contents"
	}
	add(q.Node != "", where, func(q *shownWorkOrders) { q.Node, q.OnlyNode = "", false })
	add(q.Assignee != "", "assigned to "+whoIs(q.Assignee, names.Assignees), func(q *shownWorkOrders) { q.Assignee = "" })
	add(q.Creator != "", "created by "+whoIs(q.Creator, names.Creators), func(q *shownWorkOrders) { q.Creator = "" })
	add(q.Customer != "", "customer “"+q.Customer+"”", func(q *shownWorkOrders) { q.Customer = "" })
	add(q.CreatorKind != "", "created by "+creatorTexts[q.CreatorKind], func(q *shownWorkOrders) { q.CreatorKind = "" })
	add(q.ExternalID != "", "external id "+q.ExternalID, func(q *shownWorkOrders) { q.ExternalID = "" })
	add(q.Review != "", reviewTexts[q.Review], func(q *shownWorkOrders) { q.Review = "" })
	add(q.Incoming, "incoming, none of us has it yet", func(q *shownWorkOrders) { q.Incoming = false })
	add(q.NoOneCan, "unassigned, or no one can act", func(q *shownWorkOrders) { q.NoOneCan = false })
	return named
}

var (
	creatorTexts = map[models.IdentityKind]string{models.KindPerson: "a person", models.KindIntegration: "an integration"}
	reviewTexts  = map[records.ReviewWait]string{records.ReviewByAnyone: "waiting for a review", records.ReviewByMe: "waiting for my review"}
)

// whoIs returns the name of the person that a filter's value stands for.
func whoIs(text string, found []records.NamedRecord) string {
	if text == records.SearchMe {
		return "me or a team of mine"
	}
	return nameOr(found, text)
}

// nameOr returns the names of records, or the text without any.
func nameOr(found []records.NamedRecord, text string) string {
	if len(found) == 0 {
		return "“" + text + "”"
	}
	return strings.Join(stringsOf(found, func(one records.NamedRecord) string { return one.Name }), " or ")
}
