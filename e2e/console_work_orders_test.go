package e2e

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
)

// A manager gives feedback, makes a work order of it, puts it on hold and resumes it; its
// consultant sends it back and approves it; the feedback is resolved, another work order is
// cancelled.
func (j *journey) workOrder() {
	subject := fmt.Sprint("Cold air in the hall ", j.number)
	j.SignInAs(managerEmail)
	j.PressInSidebar("Feedback")
	j.Press("Give feedback")
	j.Fill("node", j.org.imported.IDs["hvac"])
	j.Fill("subject", subject)
	j.Press("Send")
	j.WantText(subject, "HVAC")
	feedback := j.Path()

	j.Press("Make a work order of it")
	j.Fill("title", subject)
	j.Choose("assignees", j.org.imported.IDs["manager"])
	j.Click("main details summary")
	j.Choose("consultants", j.org.imported.IDs["advisor"])
	j.Press("Create")
	j.WantText(subject, managerName, advisorName)
	order := j.Path()
	j.PressAction("Put on hold")
	j.WantText("On hold")
	j.Press("Resume")
	j.Press("Start work")
	j.Press("Complete and send to review")
	j.WantText("In review")

	advisor := j.open()
	advisor.SignInAs(advisorEmail)
	advisor.WantText("To review")
	advisor.Press(subject)
	advisor.WantPath(order)
	advisor.Fill("comment", "The picture is missing")
	advisor.Press("Send back")
	advisor.WantText("Sent back")
	j.Open(order)
	j.WantText("The picture is missing")
	j.PressAction("Complete and send to review")
	advisor.Open(order)
	advisor.Press("Approve")
	advisor.WantText("Approved")

	j.Open(feedback)
	j.Press("Resolve")
	j.WantText("Resolved")

	j.PressInSidebar("Work orders")
	j.Press("New work order")
	j.Fill("q", "AHU 1")
	j.Press("Search")
	j.Press("AHU 1")
	j.Fill("title", "No longer needed")
	j.Press("Create")
	j.PressAction("Cancel…")
	j.Press("Cancel the work order")
	j.WantText("Cancelled")
}

// A manager finds work orders in the list, opens them as CSV, and sees which are on hold.
func (j *journey) list() {
	word := fmt.Sprint("bearing", j.number)
	grease, replace := "Grease the "+word, "=Replace the "+word
	first := j.order(grease, "")
	j.order(replace, "")
	j.SignInAs(managerEmail)
	j.PressInSidebar("Work orders")
	j.Fill("q", "no such "+word)
	j.Press("Search")
	j.WantText("No work order that you may read matches all of these filters")
	j.Press("Clear the filters")
	j.Fill("q", word)
	j.Unfold("Filters")
	j.Fill("assignee", managerName)
	j.Press("Filter")
	j.WantText(grease, replace, "HVAC", "AHU 1", managerName)

	name, content := j.Download("Download as CSV")
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil || len(rows) != 3 || !slices.Contains(rows[0], "title") || !strings.HasSuffix(name, ".csv") {
		j.t.Fatalf("%s has the rows %v (%v), want a heading and two work orders", name, rows, err)
	}
	column := slices.Index(rows[0], "title")
	if got := []string{rows[1][column], rows[2][column]}; !slices.Contains(got, grease) || !slices.Contains(got, "'"+replace) {
		j.t.Errorf("the titles are %q", got)
	}

	j.Press(grease)
	j.WantPath(first)
	j.PressAction("Put on hold")
	j.PressInSidebar("Work orders")
	j.Fill("q", word)
	j.Unfold("Filters")
	j.Fill("status", "on_hold")
	j.Press("Filter")
	j.WantText(grease)
	j.WantNoText(replace)
}

// Two people edit one work order at two API servers: the second sees what the first changed, and
// keeps their input. One cancels what the other completes: the second sees the rule.
func (j *journey) twoAtOnce() {
	title := fmt.Sprint("Replace the lamp ", j.number)
	page := j.order(title, "")
	colleague := j.openAs(colleagueEmail)
	j.SignInAs(managerEmail)
	j.Open(page + "/edit")
	colleague.Open(page + "/edit")
	j.Fill("title", title+" today")
	j.Press("Save")
	j.WantText("Saved.", title+" today")
	colleague.Fill("description", "Bring the long ladder.")
	colleague.Fill("priority", "high")
	colleague.Press("Save")
	colleague.WantText(managerName+" changed the title from “"+title+"” to “"+title+" today”", "Nothing of yours is lost", "Now: "+title+" today")
	if kept := []string{colleague.Entered("title"), colleague.Entered("description"), colleague.Entered("priority")}; !slices.Equal(kept, []string{title, "Bring the long ladder.", "high"}) {
		j.t.Errorf("the form keeps %q", kept)
	}
	colleague.Fill("title", title+" today")
	colleague.Press("Save")
	colleague.WantText("Saved.", title+" today", "Bring the long ladder.", "High")

	colleague.PressAction("Cancel…")
	j.Open(page)
	j.PressAction("Complete…")
	j.WantText("It cannot be reopened.")
	j.Press("Complete the work order")
	j.WantText("Completed")
	colleague.Fill("reason", "It is light enough.")
	colleague.Press("Cancel the work order")
	colleague.WantText(managerName+" completed the work order", "Nothing was done", "Completed")

	page = j.order(title+" again", "")
	j.Open(page)
	j.PressAction("Complete…")
	colleague.Open(page)
	colleague.PressAction("Cancel…")
	colleague.Fill("reason", "It is light enough.")
	colleague.Press("Cancel the work order")
	colleague.WantText("Cancelled")
	j.Press("Complete the work order")
	j.WantText(colleagueName+" cancelled the work order: “It is light enough.”", "Nothing was done", "Cancelled")
}

// A double click on Create makes one work order, and one on Complete completes it once.
func (j *journey) doubleClick() {
	title := fmt.Sprint("Tighten the belt ", j.number)
	j.SignInAs(managerEmail)
	j.Open("/console/work-orders/new?node=" + j.org.imported.IDs["ahu1"])
	j.Fill("title", title)
	j.PressTwice("Create")
	j.WantText("Start work", title)
	j.PressAction("Complete…")
	j.PressTwice("Complete the work order")
	j.WantText("Completed", "completed the work order")
	for sql, what := range map[string]string{
		`SELECT count(*) FROM work_orders WHERE title = $1`:                                                                             "work orders",
		`SELECT count(*) FROM log WHERE action = 'work_order.completed' AND record_id IN (SELECT id FROM work_orders WHERE title = $1)`: "completions",
	} {
		if n := j.count(sql, title); n != 1 {
			j.t.Errorf("the double clicks made %d %s", n, what)
		}
	}
}
