package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

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
	maps.Copy(h.org.imported.IDs, h.importFile(fmt.Sprintf(`
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
`, workerName, workerEmail, memberName, memberEmail, advisorName, advisorEmail)).IDs)
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
	return i.createRecord("/work-orders", body)
}

// complete completes the work order.
func (i *integrator) complete(id string) {
	i.t.Helper()
	i.want(http.StatusOK, http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}, "complete": true})
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

// The mail server is down and the worker that tried first is killed. A work order does not wait for its
// mail; afterwards both notices of a person come as one mail, and a link for a forgotten password arrives.
// Neither process logs anything of the link, and Temporal has none of it.
func TestMailServerDown(t *testing.T) {
	t.Parallel()
	server := mailtest.NewServer(t, mailtest.Options{})
	h := newMailHarness(t, server, settings{"LOG_LEVEL": "DEBUG"})
	first := h.startWorker()
	api := h.startAPI(nil)
	i := h.integrator()
	server.Down()
	id := h.createOrder(i, "Replace filter", []string{"worker", "crew"}, false)
	h.forget(memberEmail)
	eventually(t, mailLimit, "the mail server had a connection", func() bool { return server.Seen(mailtest.Connect) > 0 })
	i.complete(id)
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	mail := workflows.MailID(h.org.imported.IDs["acme"])
	h.awaitWorkflow(mail, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if listed := h.run("mail", "list", "--organization", "acme"); strings.Count(listed, "notices") != 2 || !strings.Contains(listed, "The mail server") {
		t.Errorf("the waiting mail is listed as\n%s", listed)
	}
	first.kill()
	// As when the lease of the first worker, or the time until it would try again, has passed.
	if _, err := h.db.Exec(t.Context(), `UPDATE sign_in_links SET next_mail_at = now() WHERE sealed IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	second := h.startWorker()
	server.Up()
	awaitMail(t, server, "wilhelmina.ostrowski assigned to you, complete", "bartholomew.quince assigned to you, complete",
		"bartholomew.quince Choose a new password")
	h.awaitWorkflow(mail, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	eventually(t, mailLimit, "no token is kept", func() bool { return h.count(`SELECT count(*) FROM sign_in_links WHERE sealed IS NOT NULL`) == 0 })

	var link []string
	for _, message := range server.Messages() {
		if found := regexp.MustCompile(regexp.QuoteMeta(h.settings["MILLWRIGHT_PUBLIC_URL"]) + `/console/reset/(\S+)`).FindStringSubmatch(message.Text); found != nil {
			link = found
		}
	}
	if link == nil {
		t.Fatal("no message has a link")
	}
	page, err := http.Get(link[0])
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != http.StatusOK {
		t.Errorf("the link gets %d", page.StatusCode)
	}
	places := h.temporalData()
	places["the log of the API server"], places["the log of the first worker"], places["the log of the second worker"] = api.log.String(), first.log.String(), second.log.String()
	for _, leak := range leaks(places, map[string]string{"the link": link[1], "the address": memberEmail, "the name": "Quince"}) {
		t.Error(leak)
	}
}

// forget asks for a link for a forgotten password.
func (h *harness) forget(email string) {
	h.t.Helper()
	response, err := http.PostForm(h.settings["MILLWRIGHT_PUBLIC_URL"]+"/console/forgotten", url.Values{"email": {email}, "form_key": {"forgotten"}})
	if err != nil {
		h.t.Fatal(err)
	}
	response.Body.Close()
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
	h.forget("nia.hill@neighbor.example.com")
	awaitMail(t, server, "nia.hill Choose a new password")
	t.Logf("the link came after %s", time.Since(asked))
}
