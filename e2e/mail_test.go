package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millwright/mail/mailtest"
	"millwright/workflows"
)

// mailLimit limits the time that mail may take to arrive: ten seconds, and with a server that is down
// pauses of 15 seconds to a minute.
const mailLimit = 2 * time.Minute

// The people who work, besides the organization's manager.
const (
	workerName, workerEmail   = "Wilhelmina Ostrowski", "wilhelmina.ostrowski@acme.example.com"
	memberName, memberEmail   = "Bartholomew Quince", "bartholomew.quince@acme.example.com"
	advisorName, advisorEmail = "Clementine Vasquez", "clementine.vasquez@acme.example.com"
)

// importWorkforce adds people and a team to the organization: the worker, who is also
// in the crew, the crew's other member, and the advisor.
func (h *harness) importWorkforce() {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "workforce.yaml")
	err := os.WriteFile(file, fmt.Appendf(nil, `
organization: {key: acme}
permission_definitions: [{key: working, name: Working, applies_below: true, grants: [inventory.read]}]
people:
  - {key: worker, name: %q, email: %q}
  - {key: member, name: %q, email: %q}
  - {key: advisor, name: %q, email: %q}
teams: [{key: crew, name: Crew, members: [worker, member]}]
assignments:
  - {node: hq, identity: worker, definition: working}
  - {node: hq, identity: advisor, definition: working}
  - {node: hq, identity: crew, definition: working}
`, workerName, workerEmail, memberName, memberEmail, advisorName, advisorEmail), 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	var imported struct {
		IDs map[string]string `json:"ids"`
	}
	if err := json.Unmarshal([]byte(h.run("import", file)), &imported); err != nil {
		h.t.Fatalf("the import's output: %v", err)
	}
	maps.Copy(h.org.imported.IDs, imported.IDs)
}

// newMailHarness makes an installation with a workforce that sends mail through the
// server.
func newMailHarness(t testing.TB, server *mailtest.Server, own settings, receivers ...*receiver) *harness {
	t.Helper()
	all := settings{"SMTP_URL": server.URL(), "MAIL_FROM": "Millwright <no-reply@millwright.example.com>"}
	maps.Copy(all, own)
	h := newHarness(t, all, receivers...)
	h.importWorkforce()
	return h
}

// createOrder creates a work order that is assigned to the integration and to the
// people with the keys. If it is to be reviewed, the advisor is its consultant.
func (h *harness) createOrder(i *integrator, title string, workers []string, reviewed bool) string {
	h.t.Helper()
	body := map[string]any{"inventory_id": i.node, "title": title}
	assignees := []string{h.org.imported.IDs["erp"]}
	for _, key := range workers {
		assignees = append(assignees, h.org.imported.IDs[key])
	}
	body["assignees"] = assignees
	if reviewed {
		body["consultants"] = []string{h.org.imported.IDs["advisor"]}
	}
	response, err := i.call(http.MethodPost, "/work-orders", "", body)
	if err != nil || response.status != http.StatusCreated {
		h.t.Fatalf("create %q: status %d, error %v, body %s", title, response.status, err, response.body)
	}
	return idOf(h.t, response.body)
}

// complete completes the work order.
func (i *integrator) complete(id string) {
	i.t.Helper()
	response, err := i.call(http.MethodPost, "/work-orders/"+id+"/answers", "", map[string]any{"answers": []any{}, "complete": true})
	if err != nil || response.status != http.StatusOK {
		i.t.Fatalf("complete: status %d, error %v, body %s", response.status, err, response.body)
	}
}

// awaitMail waits for messages and checks that exactly these came, once each: the
// recipient and what the subject says. Messages with the same Message-ID and
// recipient count once.
func awaitMail(t testing.TB, server *mailtest.Server, want ...string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	messages := func() []string {
		var got []string
		seen := map[string]bool{}
		for _, m := range server.Messages() {
			if seen[m.MessageID+m.Recipient] {
				continue
			}
			seen[m.MessageID+m.Recipient] = true
			name, _, _ := strings.Cut(m.Recipient, "@")
			_, what, about := strings.Cut(m.Subject, ": ")
			if !about {
				what = m.Subject
			}
			got = append(got, name+" "+what)
		}
		slices.Sort(got)
		return got
	}
	ctx, cancel := context.WithTimeout(t.Context(), mailLimit)
	defer cancel()
	if err := server.Wait(ctx, func() bool { return len(messages()) >= len(want) }); err != nil || !slices.Equal(messages(), want) {
		t.Fatalf("messages (error %v)\n\t%s,\nwant\n\t%s", err, strings.Join(messages(), "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestPeopleAreNotifiedByMailOnce(t *testing.T) {
	t.Parallel()
	server := mailtest.NewServer(t, mailtest.Options{})
	h := newMailHarness(t, server, nil)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	id := h.createOrder(i, "Replace filter", []string{"worker", "crew"}, false)
	created := []string{"wilhelmina.ostrowski assigned to you", "bartholomew.quince assigned to you"}
	awaitMail(t, server, created...)
	h.awaitFound(`WorkOrderStatus = "open" AND ExecutionStatus = "Running" AND RecordId = "`+id+`"`, workflows.WorkOrderID(id))

	i.complete(id)
	completed := slices.Concat(created, []string{"wilhelmina.ostrowski complete", "bartholomew.quince complete"})
	awaitMail(t, server, completed...)
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	h.awaitFound(`WorkOrderStatus = "complete" AND Organization = "`+h.org.imported.IDs["acme"]+`"`, workflows.WorkOrderID(id))

	// No one is notified of an assignment on a closed work order: the next mail is about other things.
	response, err := i.call(http.MethodPost, "/work-orders/"+id+"/assignees", "", map[string]any{"assignees": []string{h.org.imported.IDs["advisor"]}})
	if err != nil || response.status != http.StatusOK {
		t.Fatalf("assign: status %d, error %v, body %s", response.status, err, response.body)
	}

	response, err = i.call(http.MethodPost, "/issues", "", map[string]any{"inventory_id": i.node, "subject": "It rattles"})
	if err != nil || response.status != http.StatusCreated {
		t.Fatalf("feedback: status %d, error %v, body %s", response.status, err, response.body)
	}
	issue := idOf(t, response.body)
	awaitMail(t, server, append(completed, "ottilie.quarrington new feedback")...)
	h.awaitWorkflow(workflows.FeedbackID(issue), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	h.run("issues", "resolve", issue, "--as", managerEmail)
	h.awaitWorkflow(workflows.FeedbackID(issue), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	if n := h.count(`SELECT count(*) FROM dirty_records`); n != 0 {
		t.Errorf("%d records are dirty at the end", n)
	}
	eventually(t, mailLimit, "every notice is marked as mailed", func() bool { return h.count(`SELECT count(*) FROM notices WHERE mail <> 'sent'`) == 0 })
}

func TestMailServerDown(t *testing.T) {
	t.Parallel()
	server := mailtest.NewServer(t, mailtest.Options{})
	h := newMailHarness(t, server, nil)
	worker := h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	server.Down()
	id := h.createOrder(i, "Replace filter", []string{"worker", "crew"}, false)
	eventually(t, mailLimit, "the mail server had a connection", func() bool { return server.Seen(mailtest.Connect) > 0 })
	i.complete(id)
	// The work order does not wait for its mail.
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	mail := workflows.MailID(h.org.imported.IDs["acme"])
	h.awaitWorkflow(mail, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if listed := h.run("mail", "list", "--organization", "acme"); strings.Count(listed, "notices") != 2 || !strings.Contains(listed, "The mail server") {
		t.Errorf("the waiting mail is listed as\n%s", listed)
	}
	// The mail does not depend on the worker that tried first. Both notices of a person are one mail.
	worker.kill()
	h.startWorker()
	server.Up()
	awaitMail(t, server, "wilhelmina.ostrowski assigned to you, complete", "bartholomew.quince assigned to you, complete")
	h.awaitWorkflow(mail, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// A link for a forgotten password arrives although the mail server was down and the worker
// that tried first was killed. Neither process logs anything of it, and Temporal has none of it.
func TestALinkArrivesAfterTheMailServerWasDown(t *testing.T) {
	t.Parallel()
	server := mailtest.NewServer(t, mailtest.Options{})
	h := newMailHarness(t, server, settings{"LOG_LEVEL": "DEBUG"})
	first := h.startWorker()
	api := h.startAPI(nil)
	server.Down()
	base := h.settings["MILLWRIGHT_PUBLIC_URL"]
	response, err := http.PostForm(base+"/console/forgotten", url.Values{"email": {workerEmail}, "form_key": {"forgotten"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	eventually(t, mailLimit, "the mail server had a connection", func() bool { return server.Seen(mailtest.Connect) > 0 })
	first.kill()
	// As when the lease of the first worker, or the time until it would try again, has passed.
	if _, err := h.db.Exec(t.Context(), `UPDATE sign_in_links SET next_mail_at = now() WHERE sealed IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	second := h.startWorker()
	server.Up()
	ctx, cancel := context.WithTimeout(t.Context(), mailLimit)
	defer cancel()
	if err := server.Wait(ctx, func() bool { return len(server.Messages()) > 0 }); err != nil {
		t.Fatal(err)
	}
	message := server.Messages()[0]
	link := regexp.MustCompile(regexp.QuoteMeta(base) + `/console/reset/(\S+)`).FindStringSubmatch(message.Text)
	if link == nil || message.Recipient != workerEmail {
		t.Fatalf("a message to %s:\n%s", message.Recipient, message.Text)
	}
	page, err := http.Get(link[0])
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != http.StatusOK {
		t.Errorf("the link gets %d", page.StatusCode)
	}
	eventually(t, mailLimit, "no token is kept", func() bool { return h.count(`SELECT count(*) FROM sign_in_links WHERE sealed IS NOT NULL`) == 0 })
	places := h.temporalData()
	places["the log of the API server"], places["the log of the first worker"], places["the log of the second worker"] = api.log.String(), first.log.String(), second.log.String()
	for place, text := range places {
		for _, secret := range []string{link[1], workerEmail, "Ostrowski"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", place, secret)
			}
		}
	}
}

func TestNoticesStayInTheInboxWithoutAMailServer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	h.importWorkforce()
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	id := h.createOrder(i, "Replace filter", []string{"worker"}, false)
	i.complete(id)
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	eventually(t, mailLimit, "the notices are in the inbox alone", func() bool { return h.count(`SELECT count(*) FROM notices WHERE mail = 'inbox'`) == 2 })
	_, err := h.temporal.DescribeWorkflowExecution(t.Context(), workflows.MailID(h.org.imported.IDs["acme"]), "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); !missing {
		t.Errorf("a workflow of mail was started without a mail server: %v", err)
	}
}

// The mail of an organization does not wait for another's, whose mail server hangs.
func TestAMailServerThatHangsForOneOrganization(t *testing.T) {
	t.Parallel()
	server := mailtest.NewServer(t, mailtest.Options{})
	h := newMailHarness(t, server, nil)
	h.startWorker()
	h.startAPI(nil)
	server.Hang(workerEmail)
	h.createOrder(h.integrator(), "Replace filter", []string{"worker"}, false)
	eventually(t, mailLimit, "the mail server hangs", func() bool { return server.Seen(mailtest.Recipient) > 0 })
	h.importFile(`{organization: {key: neighbor, name: Neighbor, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 600, integrations: 1}}, people: [{key: nia, name: Nia Hill, email: nia.hill@neighbor.example.com}]}`)
	asked := time.Now()
	response, err := http.PostForm(h.settings["MILLWRIGHT_PUBLIC_URL"]+"/console/forgotten", url.Values{"email": {"nia.hill@neighbor.example.com"}, "form_key": {"forgotten"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	awaitMail(t, server, "nia.hill Choose a new password")
	t.Logf("the link came after %s", time.Since(asked))
}

func TestNothingPersonalInTheWorkflowsOfRecords(t *testing.T) {
	t.Parallel()
	const title, comment = "Mr Featherstone's boiler", "Ask for Featherstone at the gate"
	server := mailtest.NewServer(t, mailtest.Options{User: "postmaster", Password: "hunter2-of-the-mail"})
	h := newMailHarness(t, server, settings{"LOG_LEVEL": "DEBUG"})
	worker := h.startWorker()
	api := h.startAPI(nil)
	i := h.integrator()

	// The server's rejections quote the address.
	server.Reject(memberEmail, 550)
	server.Once(mailtest.Recipient, mailtest.Reply(451, "4.2.1 <"+workerEmail+"> "+workerName+" is busy"))
	id := h.createOrder(i, title, []string{"worker", "crew"}, true)
	awaitMail(t, server, "wilhelmina.ostrowski assigned to you", "clementine.vasquez you are its consultant")
	i.complete(id)
	h.run("work-orders", "review", id, "--send-back", "--comment", comment, "--as", advisorEmail)
	awaitMail(t, server, "wilhelmina.ostrowski assigned to you", "clementine.vasquez you are its consultant",
		"clementine.vasquez waits for your review, an operator acted as you", "wilhelmina.ostrowski sent back")
	response, err := i.call(http.MethodPost, "/work-orders/"+id+"/cancel", "", map[string]string{"reason": comment})
	if err != nil || response.status != http.StatusOK {
		t.Fatalf("cancel: status %d, error %v, body %s", response.status, err, response.body)
	}
	awaitMail(t, server, "wilhelmina.ostrowski assigned to you", "clementine.vasquez you are its consultant",
		"clementine.vasquez waits for your review, an operator acted as you", "wilhelmina.ostrowski sent back", "clementine.vasquez cancelled", "wilhelmina.ostrowski cancelled")
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	sent := server.Messages()
	if last := sent[len(sent)-1]; !strings.Contains(last.Text, comment) || !strings.Contains(last.Text, title) {
		t.Fatalf("the mail lacks the personal data that the test searches for:\n%s", last.Text)
	}

	secrets := map[string]string{"the mail server's password": "hunter2-of-the-mail", "a title or comment": "Featherstone"}
	for _, person := range []struct{ name, email string }{
		{managerName, managerEmail}, {workerName, workerEmail}, {memberName, memberEmail}, {advisorName, advisorEmail},
	} {
		_, last, _ := strings.Cut(person.name, " ")
		secrets["the name "+last], secrets["the address of "+last] = last, person.email
	}
	places := h.temporalData()
	if places[workflows.WorkOrderID(id)] == "" {
		t.Error("Temporal has no data of the work order")
	}
	places["the log of the API server"], places["the log of the worker"] = api.log.String(), worker.log.String()
	for place, text := range places {
		for what, secret := range secrets {
			if at := strings.Index(strings.ToLower(text), strings.ToLower(secret)); at >= 0 {
				t.Errorf("%s is in %s: …%q", what, place, text[max(0, at-60):at])
			}
		}
	}
}
