package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/console"
	"millwright/console/consoletest"
	"millwright/mail"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// All that the records and the node of a reach have begins with hidden. The name of who changed them
// begins with changer: pages may show that of people. No token has their exclamation mark.
const hidden, changer = "Xq!", "Zq!"

// reach is a person and an integration that may read records, until the right is taken away, and
// given back. The first of each record is shown; each other one is written before the right is taken.
type reach struct {
	*harness
	visitor *consoletest.Visitor
	// person and program are their keys, hook is the program's address.
	person, program, hook string
	// orders are cancelled, with a comment; open ones are overdue, feedback is resolved.
	orders, open, feedback []string
	// mails are those that were sent, by the record that they are about.
	mails map[string]string
	sent  []mail.Message
}

// Send keeps the mail.
func (r *reach) Send(_ context.Context, m mail.Message) error {
	r.sent = append(r.sent, m)
	return nil
}

// rayFile adds Ray, who has every organization-wide permission, and a team.
const rayFile = `
organization: {key: acme}
permission_definitions:
  - {key: whole, name: Whole, applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update, work_orders.delete, work_orders.forward, feedback.read, feedback.create, feedback.resolve]}
organization_permission_definitions:
  - {key: org_all, name: Everything, grants: [incoming_work_orders, integrations, log_records, people]}
people: [{key: ray, name: Ray Banks, email: ray@acme.example.com, organization_definition: org_all}]
teams: [{key: readers, name: Readers, members: [ray]}]
`

// newReach returns the records for the readers of acme, or of its service company. assigned names
// who gets the permissions on the headquarters.
func newReach(t *testing.T, person, program, hook string, assigned ...string) *reach {
	t.Helper()
	r := &reach{harness: newHarness(t), person: person, program: program, hook: hook, mails: map[string]string{}}
	imported, err := r.Imports.Run(t.Context(), []byte(rayFile))
	if err != nil {
		t.Fatal(err)
	}
	r.Acme.IDs = imported.IDs
	r.Exec(`DELETE FROM assignments WHERE identity_id = $1`, r.ID("erp"))
	r.Exec(`INSERT INTO team_members (organization_id, team_id, member_id) VALUES ($1, $2, $3)`, r.Acme.OrganizationID, r.ID("readers"), r.ID("erp"))
	for _, key := range assigned {
		r.assignTo(key, r.ID("hq"), r.ID("whole"))
	}
	r.assignTo("outsider", r.ID("ahu1"), r.ID("reading"))
	r.assignTo("crew", r.ID("ahu1"), r.ID("working"))
	r.Exec(`UPDATE inventory_nodes SET name = $2 WHERE id = $1`, r.ID("ahu1"), hidden+"node plant")
	r.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, r.ID("ann"), changer+" Ann")
	r.write()
	r.visitor = consoletest.On(t, r.Fixture, func(o *console.Options) { o.Tester = sender{r.harness} }).SignedIn(person)
	return r
}

// write writes the next records. For the service company they are assigned to it.
func (r *reach) write() (i int) {
	t, ctx := r.t, r.t.Context()
	t.Helper()
	i = len(r.orders)
	author, ann, workers := r.person, r.harness.person("ann"), []string{r.ID("bob")}
	if r.person == "pia" {
		author, workers = "ann", append(workers, r.ID("polar"))
	}
	create := func(by, title string, target *models.Time) string {
		description, form, external := hidden+"description", r.ID("inspection"), fmt.Sprintf("%scode%d", hidden, i)
		created, err := r.Records.CreateWorkOrder(ctx, r.harness.person(by), store.NoKey, records.NewWorkOrder{ //nolint:contextcheck // the fixture has its own
			InventoryID: r.ID("ahu1"), Title: title, Description: &description, FormID: &form, ExternalID: &external, TargetDate: target, Assignees: workers,
		})
		if err != nil {
			t.Fatal(err)
		}
		return created.RecordID
	}
	r.orders = append(r.orders, create(author, fmt.Sprintf("%stitle%d overhaul", hidden, i), nil))
	due := models.TimeOf(r.Clock.Now().Add(-time.Hour))
	r.open = append(r.open, create("ann", fmt.Sprintf("%stitle%d overdue overhaul", hidden, i), &due))
	if _, err := r.Records.AnswerWorkOrder(ctx, r.harness.person("bob"), store.NoKey, r.open[i], []records.GivenAnswer{{QuestionID: r.ID("q_note"), Value: hidden + "answer"}}, records.SaveAnswers); err != nil {
		t.Fatal(err)
	}
	r.Clock.Advance(time.Second)
	reason := fmt.Sprintf("%sreason%d", hidden, i)
	err := r.Records.AddComment(ctx, ann, store.NoKey, r.orders[i], hidden+"comment")
	if err == nil {
		_, err = r.Records.CancelWorkOrder(ctx, ann, store.NoKey, r.orders[i], &reason)
	}
	if err == nil && author != r.person {
		r.feedback = append(r.feedback, "") // a service company has none
	} else if err == nil {
		var given store.WriteResult
		given, err = r.Records.CreateFeedback(ctx, r.harness.person(author), store.NoKey, records.NewFeedback{InventoryID: r.ID("ahu1"), Subject: fmt.Sprintf("%stitle%d rattle", hidden, i)})
		r.feedback = append(r.feedback, given.RecordID)
		if err == nil {
			_, err = r.Records.ResolveFeedback(ctx, ann, store.NoKey, given.RecordID)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	// The receiver returns what it gets.
	d := r.pendingDeliveries(r.hook, r.orders[i])[0]
	echo := webhooks.Attempt{DeliveryID: d.DeliveryID, Number: 1, StartedAt: models.TimeOf(r.Clock.Now()), Status: http.StatusTeapot, ResponseBody: d.Body}
	if _, err := r.Webhooks.RecordAttempts(ctx, r.AddressOf(r.hook), []webhooks.Attempt{echo}); err != nil {
		t.Fatal(err)
	}
	r.Clock.Advance(time.Minute)
	return i
}

// Each way in which a record reaches a person or a program shows it with the right to read it, and
// nothing of it once the right has been taken away between the write and the read.
func TestARecordReachesOnlyThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	type taken struct {
		what             string
		remove, giveBack func(*reach)
		// keepsNode is true if the readers still see the records' node.
		keepsNode bool
	}
	grants := func(grants string, manager bool) func(*reach) {
		return func(r *reach) {
			r.Exec(`UPDATE permission_definitions SET grants = $2::text[], inventory_manager = $3 WHERE id = $1`, r.ID("whole"), grants, manager)
		}
	}
	move := func(node string) func(*reach) {
		return func(r *reach) {
			r.Exec(`UPDATE inventory_nodes SET parent_id = $2 WHERE id = $1`, r.ID("ahu1"), r.ID(node))
		}
	}
	for _, readers := range []struct {
		name                  string
		person, program, hook string
		assigned              []string
		takes                 []taken
	}{
		{name: "assigned above", person: "ray", program: "erp", hook: "erp_hook", assigned: []string{"ray", "erp"}, takes: []taken{
			{"the definition loses its grants", grants("{inventory.read}", false),
				grants("{inventory.read,work_orders.read,work_orders.create,work_orders.update,work_orders.delete,work_orders.forward,feedback.read,feedback.create,feedback.resolve}", true), true},
			{"the node moves away", move("annex"), move("hvac"), false},
			{"the assignment is removed", func(r *reach) { r.Exec(`DELETE FROM assignments WHERE identity_id = ANY ($1)`, r.ids("ray", "erp")) }, nil, false},
		}},
		{name: "in a team", person: "ray", program: "erp", hook: "erp_hook", assigned: []string{"readers"}, takes: []taken{
			{"they leave it", func(r *reach) { r.Exec(`DELETE FROM team_members WHERE team_id = $1`, r.ID("readers")) }, nil, false},
		}},
		{name: "in a service company", person: "pia", program: "dispatch", hook: "dispatch_hook", assigned: []string{"erp"}, takes: []taken{
			{"it is no longer assigned", func(r *reach) { r.Exec(`DELETE FROM work_order_assignees WHERE identity_id = $1`, r.ID("polar")) },
				func(r *reach) {
					r.Exec(`INSERT INTO work_order_assignees SELECT id, $1, 'worker', 9 FROM work_orders`, r.ID("polar"))
				}, false},
			{"they lose incoming work orders", func(r *reach) {
				r.Exec(`UPDATE organization_permission_definitions SET grants = '{integrations,people,log_records}' WHERE id = $1`, r.Polar.IDs["org_incoming"])
				r.Exec(`UPDATE people SET admin = false, organization_definition_id = $2 WHERE id = $1`, r.ID("pia"), r.Polar.IDs["org_incoming"])
			}, nil, false},
		}},
	} {
		t.Run(readers.name, func(t *testing.T) {
			t.Parallel()
			r := newReach(t, readers.person, readers.program, readers.hook, readers.assigned...)
			for _, row := range waysToRecords {
				if row.shownTo(r) {
					marker := strings.ReplaceAll(row.marker(), "N", "0")
					if text := row.show(r, 0); !strings.Contains(text, marker) {
						t.Errorf("%s shows no %s to those who may read it:\n%s", row.name, marker, text)
					}
				}
			}
			for _, take := range readers.takes {
				n := r.write()
				take.remove(r)
				for _, row := range waysToRecords {
					if row.shownTo(r) && !(row.node && take.keepsNode) {
						if text := row.show(r, n); strings.Contains(text, hidden) {
							t.Errorf("%s: %s shows something of a record to those who may not read it:\n%s", take.what, row.name, text)
						}
					}
				}
				if take.giveBack != nil {
					take.giveBack(r)
				}
			}
		})
	}
}

// sendMail runs the activity that mails what waits for people of the organization, once it is due.
func sendMail(t testing.TB, f *servicetest.Fixture, mailer activities.Mailer, organizationID string) {
	t.Helper()
	later := func() time.Time { return f.Clock.Now().Add(store.MailDelay + time.Second) }
	service := f.NewInstance(func(o *store.Options) { o.Now = later })
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	(&activities.Mails{Service: service, Mailer: mailer, Now: later}).Register(env)
	if _, err := env.ExecuteActivity(activities.NameSendMail, organizationID); err != nil {
		t.Fatal(err)
	}
}

// mailed returns the e-mails about the record that go to the person.
func (r *reach) mailed(id string) string {
	r.t.Helper()
	if text, sent := r.mails[id]; sent {
		return text
	}
	r.sent = nil
	r.Exec(`UPDATE notices SET mail = CASE record_id WHEN $1 THEN 'waiting' ELSE 'inbox' END, mailed_at = NULL, next_mail_at = '-infinity'`, id)
	for _, organization := range []string{r.Acme.OrganizationID, r.Polar.OrganizationID} {
		sendMail(r.t, r.Fixture, r, organization)
	}
	var text strings.Builder
	for _, m := range r.sent {
		if m.To.Email == r.Email(r.person) {
			fmt.Fprintf(&text, "%s\n%s\n%s\n", m.Subject, m.Text, m.HTML)
		}
	}
	if text.Len() == 0 {
		r.t.Fatalf("no mail about %s goes to %s", id, r.person)
	}
	r.mails[id] = withChanger(text.String())
	return r.mails[id]
}

// withChanger has the name of who changed the records count as hidden.
func withChanger(text string) string { return strings.ReplaceAll(text, changer, hidden) }
