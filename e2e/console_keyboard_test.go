package e2e

import (
	"github.com/chromedp/chromedp/kb"

	"millwright/console/consoletest"
)

// A person finds a work order by a search, assigns it to a colleague, holds and resumes it,
// answers its questions and completes it with Tab, Enter, the space bar and arrows.
func (j *journey) workOrderByKeyboard() {
	const word = "pulley"
	const title = "Align the " + word
	page := "/console/work-orders/" + j.integrator().createRecord("/work-orders", object{
		"inventory_id": j.org.imported.IDs["ahu1"], "title": title,
		"form_id": j.org.imported.IDs["round"], "assignees": []string{j.org.imported.IDs["manager"]},
	})
	j.Open("/console")
	j.TabTo("E-mail address")
	j.Type(managerEmail)
	j.TabTo("Password")
	j.Type(consoletest.Password)
	j.Enter()
	j.WantPath("/console")
	j.TabTo("Work orders")
	j.Enter()
	j.SkipToContent()
	j.TabTo("Number, external id, words of the title or the place")
	j.Type(word)
	j.Enter()
	j.SkipToContent()
	j.TabTo(title)
	j.Enter()
	j.WantPath(page)

	j.SkipToContent()
	j.TabTo("Assign people")
	j.Enter()
	j.SkipToContent()
	j.TabTo(colleagueName)
	j.Type(" ")
	j.TabTo("As")
	j.Type(kb.ArrowDown + kb.ArrowUp) // to the consultant, and back
	j.TabTo("Assign")
	j.Space()
	j.WantText("Assigned to the work order.", colleagueName, "Open")
	j.WantNoText("Consultant, reviews the work")

	j.SkipToContent()
	j.TabTo("Actions")
	j.Type(" ")
	j.TabTo("Put on hold")
	j.Space()
	j.WantText("On hold")
	j.SkipToContent()
	j.TabTo("Resume")
	j.Enter()
	j.WantText("Resumed.")

	j.SkipToContent()
	j.TabTo("Answer")
	j.Enter()
	j.SkipToContent()
	j.TabTo("Good")
	j.Type(" " + kb.ArrowDown) // to Worn
	j.TabTo("Filter")
	j.Type(" ")
	j.TabTo("Note")
	j.Type("The belt was loose.")
	j.TabTo("Save the answers")
	j.Enter()
	j.WantText("Worn", "Filter", "The belt was loose.")
	j.WantNoText("Good")

	j.SkipToContent()
	j.TabTo("Complete…")
	j.Enter()
	j.SkipToContent()
	j.TabTo("Complete the work order")
	j.Enter()
	j.WantPath(page)
	j.WantText("Completed")
	j.TabTo("Millwright")
	j.TabTo(managerName)
	j.Type(" ")
	j.TabTo("Sign out")
	j.Enter()
	j.WantText("You are signed out.")
}
