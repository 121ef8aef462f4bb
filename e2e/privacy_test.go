package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"millwright/mail/mailtest"
	"millwright/workflows"
)

// Searches everything that a run leaves where operators look: the logs of api and
// worker at DEBUG, the errors of operators' commands, metrics, and all data in
// Temporal. None of it may contain a name, a description or a secret of the run, which
// includes writes, errors and failures of every part.
func TestNothingPersonalInLogsHistoriesAndMetrics(t *testing.T) {
	t.Parallel()
	run := newPrivateRun(t)
	run.writes()
	run.failures()
	run.commands()

	places := run.temporalData()
	for _, workflow := range []string{
		workflows.WebhookAddressID(run.org.webhookID(1)), workflows.DeliveryID(run.failed), workflows.WorkOrderID(run.order), workflows.FeedbackID(run.issue),
	} {
		if places[workflow] == "" {
			t.Errorf("Temporal has no data of %s", workflow)
		}
	}
	maps.Copy(places, run.printed)
	places["the log of the API server"], places["the log of the worker"] = run.api.log.String(), run.worker.log.String()
	places["the metrics of the API server"], places["the metrics of the worker"] = metricsAt(t, run.settings["METRICS_ADDR"]), metricsAt(t, run.workerMetrics)
	for _, place := range []string{"the log of the API server", "the log of the worker", "the metrics of the API server", "the metrics of the worker"} {
		if len(places[place]) < 500 {
			t.Errorf("%s is %q: there is nothing to search", place, places[place])
		}
	}
	for _, leak := range leaks(places, run.secrets()) {
		t.Error(leak)
	}
}

// Texts of the run. Each has a word that appears nowhere else.
const (
	privateTitle       = "Mrs Quarrington's radiator leaks"
	privateDescription = "Ring twice; the code of the door is 4711-19"
	privateReason      = "Vandermeulen called it off"
	privateComment     = "Ask Zwickenpflug at the gate"
	privateSubject     = "The smell in Featherstonehaugh's office"
	privateExternalID  = "SAP-Ottoline-77"
	mailPassword       = "hunter2-of-the-mail"
	importedPassword   = "hunter2-of-the-import"
)

// privateRun is an installation in which everything happens that could leak private
// data.
type privateRun struct {
	*harness
	*integrator
	t               *testing.T
	mail            *mailtest.Server
	taking, failing *receiver
	api, worker     *process
	workerMetrics   string
	// body creates the work order. order and issue are the records, failed is the
	// failing delivery.
	body                 map[string]any
	order, issue, failed string
	// issued are the secrets that commands printed.
	issued []string
	// printed is the error output of commands.
	printed map[string]string
}

func newPrivateRun(t *testing.T) *privateRun {
	t.Helper()
	run := &privateRun{t: t, taking: newReceiver(t), failing: newReceiver(t), printed: map[string]string{}}
	run.taking.events = "work_order.created,work_order.updated,work_order.cancelled,issue.created,issue.resolved"
	run.failing.respondWith(always(http.StatusInternalServerError)) // with the body it was sent
	run.mail = mailtest.NewServer(t, mailtest.Options{User: "postmaster", Password: mailPassword})
	run.harness = newMailHarness(t, run.mail, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms", "LOG_LEVEL": "DEBUG"}, run.taking, run.failing)
	run.workerMetrics, _ = freePort(t)
	run.settings["METRICS_ADDR"] = run.workerMetrics
	run.worker = run.startWorker()
	run.settings["METRICS_ADDR"], _ = freePort(t)
	run.api = run.startAPI(nil)
	run.integrator = run.harness.integrator()
	ids := run.org.imported.IDs
	run.body = map[string]any{
		"inventory_id": run.node, "title": privateTitle, "description": privateDescription, "external_id": privateExternalID,
		"assignees": []string{ids["erp"], ids["worker"], ids["crew"]}, "consultants": []string{ids["advisor"]},
	}
	return run
}

// secrets returns what must not be found anywhere, by description.
func (run *privateRun) secrets() map[string]string {
	run.t.Helper()
	database, err := url.Parse(run.settings["DATABASE_URL"])
	if err != nil {
		run.t.Fatal(err)
	}
	password, _ := database.User.Password()
	secrets := map[string]string{
		"a phone number": managerPhone, "a title's name": "Quarrington", "a description": "4711-19", "a reason": "Vandermeulen",
		"a comment": "Zwickenpflug", "a subject": "Featherstonehaugh", "an external_id": privateExternalID,
		"the client secret": run.org.clientSecret, "the access token": run.token(), "a key of the settings": run.harness.key,
		"the database's password": password, "the mail server's password": mailPassword, "a person's password": importedPassword,
		"a signing secret": run.taking.secret, "another signing secret": run.failing.secret,
		"the path of a webhook address": run.taking.path, "the path of another": run.failing.path,
	}
	for _, person := range []struct{ name, email string }{
		{managerName, managerEmail}, {workerName, workerEmail}, {memberName, memberEmail}, {advisorName, advisorEmail},
	} {
		first, last, _ := strings.Cut(person.name, " ")
		secrets["the name "+first], secrets["the name "+last], secrets["the address "+person.email] = first, last, person.email
	}
	for i, secret := range run.issued {
		secrets[fmt.Sprintf("secret %d that a command printed", i+1)] = secret
	}
	return secrets
}

// writes makes a day's calls, some of them rejected.
func (run *privateRun) writes() {
	run.t.Helper()
	created, err := run.call(http.MethodPost, "/work-orders", "the key of "+privateTitle, run.body)
	if err != nil || created.status != http.StatusCreated {
		run.t.Fatalf("POST /work-orders: status %d, error %v, body %s", created.status, err, created.body)
	}
	run.order = idOf(run.t, created.body)
	run.issue = run.createRecord("/issues", map[string]any{"inventory_id": run.node, "subject": privateSubject, "description": privateDescription})
	run.rejectedCalls(run.integrator, map[string]string{"inventory_id": run.node, "title": privateTitle})
	run.want(http.StatusOK, http.MethodPatch, "/work-orders/"+run.order, map[string]any{"description": privateDescription + " " + privateComment})
	if d := awaitDelivery(run.t, run.taking, run.order); !strings.Contains(string(d.body), workerEmail) {
		run.t.Fatalf("the delivery lacks the personal data that the test searches for: %s", d.body)
	}
	run.failed = run.deliveryTo(2, run.order)
	run.awaitAttempts(run.failed, "failed", 500, 500)
	run.awaitFound(`DeliveryStatus = "failed"`, workflows.DeliveryID(run.failed))
	run.complete(run.order)
	run.run("work-orders", "review", run.order, "--send-back", "--comment", privateComment, "--as", advisorEmail)
	run.want(http.StatusOK, http.MethodPost, "/work-orders/"+run.order+"/cancel", map[string]any{"reason": privateReason})
	run.run("issues", "resolve", run.issue, "--as", managerEmail)
	eventually(run.t, mailLimit, "the mail contains the reason and the subject", func() bool {
		var all strings.Builder
		for _, m := range run.mail.Messages() {
			all.WriteString(m.Text)
		}
		return strings.Contains(all.String(), privateReason) && strings.Contains(all.String(), privateSubject)
	})
	run.awaitWorkflow(workflows.WorkOrderID(run.order), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	run.awaitWorkflow(workflows.FeedbackID(run.issue), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// failures breaks what the service depends on: the mail server, the database of api
// and worker, and a receiver.
func (run *privateRun) failures() {
	run.t.Helper()
	run.mail.Reject(memberEmail, 550)
	run.mail.Once(mailtest.Recipient, mailtest.Reply(451, "4.2.1 <"+workerEmail+"> "+workerName+" is busy"))
	run.mail.Once(mailtest.Data, mailtest.Reply(554, "5.7.1 "+privateTitle+" is spam"))
	before := run.mail.Seen(mailtest.Recipient)
	run.createRecord("/work-orders", run.body)
	eventually(run.t, mailLimit, "the mail server rejected a recipient", func() bool { return run.mail.Seen(mailtest.Recipient) >= before+3 })

	// Postgres may quote values of a statement in its errors.
	run.sql(`CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_TABLE_NAME LIKE 'attempts%' THEN PERFORM convert_from(NEW.response_body, 'UTF8')::integer; ELSE PERFORM NEW.title::integer; END IF;
		RETURN NEW; END $$`)
	for what, broken := range map[string]struct{ apply, revert string }{
		"a rejected row": {
			`ALTER TABLE work_orders ADD CONSTRAINT broken CHECK (title = '') NOT VALID`, `ALTER TABLE work_orders DROP CONSTRAINT broken`,
		},
		"a rejected value": {
			`CREATE TRIGGER stumble BEFORE INSERT ON work_orders FOR EACH ROW EXECUTE FUNCTION stumble()`, `DROP TRIGGER stumble ON work_orders`,
		},
		"a missing table": {`ALTER TABLE log RENAME TO lost`, `ALTER TABLE lost RENAME TO log`},
	} {
		run.sql(broken.apply)
		response, err := run.call(http.MethodPost, "/work-orders", "", run.body)
		if err != nil || response.status != http.StatusInternalServerError || strings.Contains(string(response.body), "SQLSTATE") {
			run.t.Errorf("%s: status %d, error %v, body %s", what, response.status, err, response.body)
		}
		run.sql(broken.revert)
	}
	// A workflow's history keeps the errors of its activities.
	run.sql(`CREATE TRIGGER stumble BEFORE INSERT ON attempts FOR EACH ROW WHEN (NEW.response_body IS NOT NULL) EXECUTE FUNCTION stumble()`)
	run.createRecord("/work-orders", run.body)
	eventually(run.t, deliveryLimit, "the worker cannot record an attempt", func() bool { return run.worker.log.has("SQLSTATE 22P02") })
	run.sql(`DROP TRIGGER stumble ON attempts`)

	run.failing.server.Close()
	run.run("deliveries", "redeliver", run.failed)
	eventually(run.t, deliveryLimit, "a delivery found no receiver", func() bool {
		return run.count(`SELECT count(*) FROM all_attempts WHERE delivery_id = $1 AND error IS NOT NULL`, run.failed) > 0
	})
}

func (run *privateRun) sql(statement string) {
	run.t.Helper()
	if _, err := run.db.Exec(run.t.Context(), statement); err != nil {
		run.t.Fatalf("%s: %v", statement, err)
	}
}

// commands runs operators' commands. Their standard output is for the operator, but
// their errors may end up in a log. Some arguments are rejected and could be repeated
// in an error.
func (run *privateRun) commands() {
	run.t.Helper()
	runCommand := func(args ...string) (printed string) {
		printed, message, _ := run.operate(args...)
		run.printed["the errors of millwright "+strings.Join(args[:2], " ")] += message
		return printed
	}
	var webhook, renewed, integration struct {
		ID           string `json:"id"`
		Secret       string `json:"secret"`
		ClientSecret string `json:"client_secret"`
	}
	read := func(printed string, into any) {
		if err := json.Unmarshal([]byte(printed), into); err != nil {
			run.t.Fatalf("a command printed %q: %v", printed, err)
		}
	}
	read(runCommand("webhooks", "create", "--integration", run.org.imported.IDs["erp"], "--url", run.failing.url()+"x", "--event", "ping", "--json"), &webhook)
	read(runCommand("webhooks", "renew-secret", webhook.ID, "--json"), &renewed)
	read(runCommand("integrations", "create", "--organization", run.org.imported.IDs["acme"], "--name", "Second", "--scope", "people:read", "--json"), &integration)
	run.issued = []string{webhook.Secret, renewed.Secret, integration.ClientSecret}
	for _, secret := range run.issued {
		if len(secret) < 20 {
			run.t.Fatalf("the commands printed the secrets %q", run.issued)
		}
	}
	runCommand("webhooks", "test", webhook.ID)
	runCommand("integrations", "list")
	runCommand("deliveries", "show", run.failed)
	runCommand("webhooks", "change", webhook.ID, "--url", "https://user:"+integration.ClientSecret+"@example.com/")
	runCommand("import", run.file("organization: {key: acme}\npeople: [{key: manager, password: "+importedPassword+"}]\n"))
	for _, rejected := range []string{
		"organization: {key: acme}\nintegrations: [{key: erp, client_secret: [" + importedPassword + "]}]\n",
		"organization: {key: acme}\npeople: [{key: manager, password: {a: " + importedPassword + "}}]\n",
		"organization: {key: acme\npassword: " + importedPassword + "\n",
		"organization: {key: acme}\npeople: [{key: other, name: Other, email: invalid, password: " + importedPassword + "}]\n",
	} {
		p := start(run.t, "millwright import", run.settings.environ(), millwright, "import", run.file(rejected))
		if status := p.wait(startLimit); status != 1 {
			run.t.Errorf("the import of %s ended with status %d", rejected, status)
		}
		run.printed["the errors of a rejected import"] += p.log.String()
	}
}

// file writes a file for one command.
func (run *privateRun) file(text string) string {
	run.t.Helper()
	path := filepath.Join(run.t.TempDir(), "import.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		run.t.Fatal(err)
	}
	return path
}

// rejectedCalls makes calls that are rejected: invalid input is easily logged.
func (h *harness) rejectedCalls(i *integrator, order map[string]string) {
	h.t.Helper()
	with := func(name, value string) map[string]string {
		changed := maps.Clone(order)
		changed[name] = value
		return changed
	}
	calls := []struct {
		method, path, key string
		body              any
		status            int
	}{
		{http.MethodGet, "/people/" + managerEmail, "", nil, http.StatusNotFound},
		{http.MethodGet, "/work-orders?limit=Quarrington", "", nil, http.StatusBadRequest},
		{http.MethodGet, "/work-orders?external_id=Quarrington", "", nil, http.StatusOK},
		{http.MethodPost, "/work-orders", "", "Quarrington", http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("Quarrington", managerPhone), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("inventory_id", managerName), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("title", strings.Repeat(managerName, 20)), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("description", "Quarrington\x00"), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "the key of " + order["title"], with("title", "Quarrington"), http.StatusUnprocessableEntity},
	}
	for _, c := range calls {
		response, err := i.call(c.method, c.path, c.key, c.body)
		if err != nil || response.status != c.status {
			h.t.Errorf("%s %s: status %d, error %v, want %d: %s", c.method, c.path, response.status, err, c.status, response.body)
		}
	}
	for secret, status := range map[string]int{h.org.clientSecret + "x": http.StatusUnauthorized, h.org.clientSecret: http.StatusBadRequest} {
		response, err := http.PostForm(i.base+"/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {h.org.clientID}, "client_secret": {secret}, "scope": {"Quarrington"},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			h.t.Errorf("a token request: status %d, want %d", response.StatusCode, status)
		}
	}
}
