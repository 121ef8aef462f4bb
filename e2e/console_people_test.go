package e2e

import (
	"fmt"
	"strings"

	"millwright/console/consoletest"
)

// A person is invited, signs in for the first time and is deactivated; the session ends on
// every API server.
func (j *journey) person() {
	email := fmt.Sprintf("nia.moor.%d@acme.example.com", j.number)
	j.SignInAs(managerEmail)
	j.PressInSidebar("People")
	j.Press("Invite someone")
	j.Fill("email", email)
	j.Press("Invite")
	j.WantText("This page shows it once.")
	link := strings.TrimPrefix(j.Text(".secret"), j.URL)

	other := j.open()
	other.Open(link)
	other.Fill("name", "Nia Moor")
	other.Fill("password", "short")
	other.Press("Join")
	other.WantText("A password has at least 10 characters.")
	other.Fill("password", consoletest.Password)
	other.Press("Join")
	other.WantPath("/console")
	other.WantText("Nia Moor")
	other.PressInMenu("Sign out")
	other.Open(link)
	other.WantText("The link cannot be used")
	other.SignInAs(email)
	other.WantPath("/console")
	other.URL = j.second
	other.Open("/console/account")
	other.WantText("Your sessions", email)

	j.Press("Go to the person")
	j.WantText("Nia Moor", "Can sign in")
	j.Press("Deactivate…")
	j.WantText("Deactivate Nia Moor?", "1 session ends at the next request.")
	j.Press("Deactivate")
	j.WantText("Deactivated.")
	other.PressInMenu("Account")
	other.WantPath("/console/sign-in")
	j.Press("Activate")
	j.WantText("Activated.")
	other.Open("/console")
	other.WantPath("/console/sign-in") // the session stays ended
}

// A manager opens the inventory level by level, gives someone permissions on a system and
// sees them inherited on its equipment, changes them and takes them away, and prints a label.
func (j *journey) inventory() {
	ids := j.org.imported.IDs
	wing, air, fan := fmt.Sprint("Wing ", j.number), fmt.Sprint("Air ", j.number), fmt.Sprint("Fan ", j.number)
	page := "/console/inventory/" + ids[fmt.Sprint("fan", j.number)]
	advisor := j.openAs(advisorEmail)
	advisor.Open(page)
	advisor.WantNoText(fan)

	j.SignInAs(managerEmail)
	j.PressInSidebar("Inventory")
	for _, open := range []string{wing, air} {
		j.Unfold("Contents " + open)
		if !j.scripts {
			j.Press("Contents of " + open)
		}
	}
	j.Press(fan)
	j.WantPath(page)
	j.Press("Assignees")
	j.WantText(managerName, "Inherited from "+wing)
	j.WantNoText(advisorName)
	j.Press(air)
	j.Press("Assignees")
	j.Press("Assign")
	j.Fill("identity_id", advisorEmail)
	j.Fill("definition_id", ids["working"])
	j.Press("Assign")
	j.WantText(advisorName, "Working", "Here, and inside", "Inherited from "+wing)
	j.Open(page + "?tab=assignees")
	j.WantText(advisorName, "Inherited from "+air, "Inherited from "+wing)
	advisor.Open(page)
	advisor.WantText(fan, "inventory: read")

	j.Press(air)
	j.Press("Assignees")
	j.Press("Change…")
	j.WantText("Change what " + advisorName + " has on " + air)
	j.Fill("definition_id", ids["full"])
	j.Press("Save")
	advisor.Open(page)
	advisor.WantText("work orders: read, create")
	j.Press("Remove…")
	j.WantText("Remove "+advisorName+" from "+air+"?", "and 1 place inside")
	j.Press("Remove")
	j.WantNoText(advisorName)
	advisor.Open(page)
	advisor.WantNoText(fan)

	j.PressInSidebar("Inventory")
	j.Fill("q", fan)
	j.Press("Search")
	j.Press(fan)
	j.Press("Label to print")
	j.WantText(fan, wing+" › "+air, "Acme Facilities")
	j.Open(strings.TrimPrefix(j.Text(".label p.id:last-child"), j.URL))
	j.WantPath(page)
}
