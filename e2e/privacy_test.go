package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"millwright/mail/mailtest"
	"millwright/workflows"
)

// Everything a full run leaves behind where operators look: the logs of api and
// worker at DEBUG, what operators' commands complain of, metrics, and all that
// Temporal holds. None of it names a person, quotes a text or tells a secret,
// though writes, refusals and failures of every part are in the run.
func TestNothingPersonalInLogsHistoriesAndMetrics(t *testing.T) {
	t.Parallel()
	run := newPrivateRun(t)
	run.writes()
	run.failures()
	run.commands()
	run.brokenSettings()

	places := run.temporalData()
	for _, workflow := range []string{
		workflows.WebhookAddressID(run.org.webhookID(1)), workflows.DeliveryID(run.failed), workflows.WorkOrderID(run.order), workflows.FeedbackID(run.issue),
	} {
		if places[workflow] == "" {
			t.Errorf("Temporal knows nothing of %s", workflow)
		}
	}
	maps.Copy(places, run.printed)
	places["the log of the api"], places["the log of the worker"] = run.api.log.String(), run.worker.log.String()
	places["the metrics of the api"], places["the metrics of the worker"] = run.metrics(run.settings["METRICS_ADDR"]), run.metrics(run.workerMetrics)
	for _, place := range []string{"the log of the api", "the log of the worker", "the metrics of the api", "the metrics of the worker"} {
		if len(places[place]) < 500 {
			t.Errorf("%s is %q: there is nothing to search", place, places[place])
		}
	}
	for _, leak := range leaks(places, run.secrets()) {
		t.Error(leak)
	}
}

// Texts of the run; every one has a word that stands nowhere else.
const (
	privateTitle       = "Mrs Quarrington's radiator leaks"
	privateDescription = "Ring twice; the code of the door is 4711-19"
	privateReason      = "Vandermeulen called it off"
	privateComment     = "Ask Zwickenpflug at the gate"
	privateSubject     = "The smell in Featherstonehaugh's office"
	privateExternalID  = "SAP-Ottoline-77"
	mailPassword       = "hunter2-of-the-mail"
	importedPassword   = "hunter2-of-the-import"
	settingsPassword   = "hunter2-of-the-settings"
)

// privateRun is an installation in which everything happens that might be told of.
type privateRun struct {
	*harness
	*integrator
	t               *testing.T
	mail            *mailtest.Server
	taking, failing *receiver
	api, worker     *process
	workerMetrics   string
	// body creates the work order, order and issue are the records, failed is the
	// delivery that fails.
	body                 map[string]any
	order, issue, failed string
	// issued are secrets that commands printed.
	issued []string
	// printed is what commands complained of.
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

// secrets are what must be found nowhere.
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
		"a password in broken settings": settingsPassword,
		"a signing secret":              run.taking.secret, "another signing secret": run.failing.secret,
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

// writes is a day's work, with calls that are refused.
func (run *privateRun) writes() {
	run.t.Helper()
	run.order = run.createRecord("/work-orders", "the key of "+privateTitle, run.body)
	run.issue = run.createRecord("/issues", "", map[string]any{"inventory_id": run.node, "subject": privateSubject, "description": privateDescription})
	run.refuseCalls(run.integrator, map[string]string{"inventory_id": run.node, "title": privateTitle})
	run.mustCall(http.MethodPatch, "/work-orders/"+run.order, map[string]any{"description": privateDescription + " " + privateComment})
	if d := awaitDelivery(run.t, run.taking, run.order); !strings.Contains(string(d.body), workerEmail) {
		run.t.Fatalf("the delivery does not show the personal data that is looked for: %s", d.body)
	}
	run.failed = run.deliveryTo(2, run.order)
	run.awaitAttempts(run.failed, "failed", 500, 500)
	run.awaitFound(`DeliveryStatus = "failed"`, workflows.DeliveryID(run.failed))
	run.complete(run.order)
	run.run("work-orders", "review", run.order, "--send-back", "--comment", privateComment, "--as", advisorEmail)
	run.mustCall(http.MethodPost, "/work-orders/"+run.order+"/cancel", map[string]any{"reason": privateReason})
	run.run("issues", "resolve", run.issue, "--as", managerEmail)
	eventually(run.t, mailLimit, "the mail tells what was written", func() bool {
		var texts strings.Builder
		for _, m := range run.mail.Messages() {
			texts.WriteString(m.Text)
		}
		return strings.Contains(texts.String(), privateReason) && strings.Contains(texts.String(), privateSubject)
	})
	run.awaitWorkflow(workflows.WorkOrderID(run.order), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	run.awaitWorkflow(workflows.FeedbackID(run.issue), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// createRecord creates a record and returns its id.
func (run *privateRun) createRecord(path, key string, body any) string {
	run.t.Helper()
	response, err := run.call(http.MethodPost, path, key, body)
	if err != nil || response.status != http.StatusCreated {
		run.t.Fatalf("POST %s: status %d, error %v, body %s", path, response.status, err, response.body)
	}
	return idOf(run.t, response.body)
}

func (run *privateRun) mustCall(method, path string, body any) {
	run.t.Helper()
	if response, err := run.call(method, path, "", body); err != nil || response.status != http.StatusOK {
		run.t.Fatalf("%s %s: status %d, error %v, body %s", method, path, response.status, err, response.body)
	}
}

// failures breaks what the service stands on: the mail server, the database for
// the api and for the worker, a receiver.
func (run *privateRun) failures() {
	run.t.Helper()
	run.mail.Refuse(memberEmail, 550)
	run.mail.Once(mailtest.Recipient, mailtest.Answer(451, "4.2.1 <"+workerEmail+"> "+workerName+" is busy"))
	run.mail.Once(mailtest.Data, mailtest.Answer(554, "5.7.1 "+privateTitle+" is spam"))
	before := run.mail.Seen(mailtest.Recipient)
	run.createRecord("/work-orders", "", run.body)
	eventually(run.t, mailLimit, "the mail server refused", func() bool { return run.mail.Seen(mailtest.Recipient) >= before+3 })

	// What the database says of a statement may quote what is in it.
	run.sql(`CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_TABLE_NAME = 'attempts' THEN PERFORM convert_from(NEW.response_body, 'UTF8')::integer; ELSE PERFORM NEW.title::integer; END IF;
		RETURN NEW; END $$`)
	for what, broken := range map[string]struct{ make, mend string }{
		"a row that is refused": {
			`ALTER TABLE work_orders ADD CONSTRAINT broken CHECK (title = '') NOT VALID`, `ALTER TABLE work_orders DROP CONSTRAINT broken`,
		},
		"a value that is refused": {
			`CREATE TRIGGER stumble BEFORE INSERT ON work_orders FOR EACH ROW EXECUTE FUNCTION stumble()`, `DROP TRIGGER stumble ON work_orders`,
		},
		"a table that is gone": {`ALTER TABLE log_records RENAME TO lost`, `ALTER TABLE lost RENAME TO log_records`},
	} {
		run.sql(broken.make)
		response, err := run.call(http.MethodPost, "/work-orders", "", run.body)
		if err != nil || response.status != http.StatusInternalServerError || strings.Contains(string(response.body), "SQLSTATE") {
			run.t.Errorf("%s: status %d, error %v, body %s", what, response.status, err, response.body)
		}
		run.sql(broken.mend)
	}
	// A workflow keeps in its history what its activity ran into.
	run.sql(`CREATE TRIGGER stumble BEFORE INSERT ON attempts FOR EACH ROW WHEN (NEW.response_body IS NOT NULL) EXECUTE FUNCTION stumble()`)
	run.createRecord("/work-orders", "", run.body)
	eventually(run.t, deliveryLimit, "the worker cannot record an attempt", func() bool { return run.worker.log.has("SQLSTATE 22P02") })
	run.sql(`DROP TRIGGER stumble ON attempts`)

	run.failing.server.Close()
	run.run("deliveries", "redeliver", run.failed)
	eventually(run.t, deliveryLimit, "a delivery found nobody", func() bool {
		return run.count(`SELECT count(*) FROM attempts WHERE delivery_id = $1 AND error IS NOT NULL`, run.failed) > 0
	})
}

func (run *privateRun) sql(statement string) {
	run.t.Helper()
	if _, err := run.db.Exec(run.t.Context(), statement); err != nil {
		run.t.Fatalf("%s: %v", statement, err)
	}
}

// commands runs operators' commands: what they print is for the one who asked,
// what they complain of may stay in a terminal's log. Some are refused words that
// they might repeat.
func (run *privateRun) commands() {
	run.t.Helper()
	ask := func(args ...string) (printed string) {
		printed, message, _ := run.operate(args...)
		run.printed["what millwright "+strings.Join(args[:2], " ")+" complains of"] += message
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
	read(ask("webhooks", "create", "--integration", run.org.imported.IDs["erp"], "--url", run.failing.url()+"x", "--event", "ping", "--json"), &webhook)
	read(ask("webhooks", "renew-secret", webhook.ID, "--json"), &renewed)
	read(ask("integrations", "create", "--organization", run.org.imported.IDs["acme"], "--name", "Second", "--scope", "people:read", "--json"), &integration)
	run.issued = []string{webhook.Secret, renewed.Secret, integration.ClientSecret}
	for _, secret := range run.issued {
		if len(secret) < 20 {
			run.t.Fatalf("the commands printed the secrets %q", run.issued)
		}
	}
	ask("webhooks", "test", webhook.ID)
	ask("integrations", "list")
	ask("deliveries", "show", run.failed)
	ask("webhooks", "change", webhook.ID, "--url", "https://user:"+integration.ClientSecret+"@example.com/")
	ask("import", run.file("organization: {key: acme}\npeople: [{key: manager, password: "+importedPassword+"}]\n"))
	for _, refused := range []string{
		"organization: {key: acme}\nintegrations: [{key: erp, client_secret: [" + importedPassword + "]}]\n",
		"organization: {key: acme}\npeople: [{key: manager, password: {a: " + importedPassword + "}}]\n",
		"organization: {key: acme\npassword: " + importedPassword + "\n",
		"organization: {key: acme}\npeople: [{key: other, name: Other, email: nobody, password: " + importedPassword + "}]\n",
	} {
		p := start(run.t, "millwright import", run.settings.environ(), millwright, "import", run.file(refused))
		if status := p.wait(startLimit); status != 1 {
			run.t.Errorf("the import of %s ended with status %d", refused, status)
		}
		run.printed["what a refused import complains of"] += p.log.String()
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

// brokenSettings starts the program with settings that are wrong: it names the
// setting and keeps its value to itself.
func (run *privateRun) brokenSettings() {
	run.t.Helper()
	for _, broken := range []struct{ command, name, value string }{
		{"migrate", "DATABASE_URL", "postgres://u:" + settingsPassword + "@h:port/db"},
		{"migrate", "DATABASE_URL", "postgres://u:" + settingsPassword + "%zz@h/db"},
		{"migrate", "DATABASE_URL", "host=h password='" + settingsPassword},
		{"migrate", "DATABASE_URL", "postgres://u:" + settingsPassword + "@127.0.0.1:1/db"},
		{"api", "DATABASE_URL", settingsPassword},
		{"worker", "SMTP_URL", "smtp://u:" + settingsPassword + "@h:port"},
		{"worker", "SMTP_URL", "smtp://u:" + settingsPassword + "%zz@h"},
		{"worker", "SMTP_URL", settingsPassword},
		{"api", "TOKEN_SIGNING_KEYS", "t1:" + settingsPassword},
		{"api", "TOKEN_SIGNING_KEYS", settingsPassword},
		{"worker", "SECRET_SEALING_KEYS", "s1:" + settingsPassword},
	} {
		all := maps.Clone(run.settings)
		all[broken.name] = broken.value
		delete(all, "METRICS_ADDR")
		p := start(run.t, "millwright "+broken.command, all.environ(), millwright, broken.command)
		if status := p.wait(startLimit); status != 1 {
			run.t.Errorf("millwright %s with %s=%s ended with status %d", broken.command, broken.name, broken.value, status)
		}
		run.printed["what is said of a wrong "+broken.name] += p.log.String() + p.out.String()
	}
}

// metrics returns what is measured at the address.
func (run *privateRun) metrics(address string) string {
	run.t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		run.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		run.t.Fatalf("metrics: status %d, %v", response.StatusCode, err)
	}
	return string(text)
}

// leaks says which secret is in which place, in any form in which it might have
// got there.
func leaks(places, secrets map[string]string) []string {
	var found []string
	for place, text := range places {
		lower := strings.ToLower(text)
		for what, secret := range secrets {
			for _, form := range formsOf(secret) {
				in := text
				if form.anyCase {
					in = lower
				}
				if at := strings.Index(in, form.text); at >= 0 {
					found = append(found, fmt.Sprintf("%s is in %s, %s: …%q", what, place, form.name, text[max(0, at-80):at]))
					break
				}
			}
		}
	}
	return found
}

// form is one way of writing a secret.
type form struct {
	name, text string
	anyCase    bool
}

func formsOf(secret string) []form {
	if secret == "" {
		return nil
	}
	quoted, _ := json.Marshal(strings.ToLower(secret)) // a text can be encoded
	forms := []form{
		{"as it is", strings.ToLower(secret), true},
		{"escaped for JSON", strings.Trim(string(quoted), `"`), true},
		{"escaped for a URL", strings.ToLower(url.QueryEscape(secret)), true},
		{"in hexadecimal", fmt.Sprintf("%x", secret), true},
	}
	// In base64 a text looks different at each of three places; its ends mix with what is beside it.
	for before, begin := range []int{0, 2, 3} {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		if end := (before + len(secret)) / 3 * 4; end-begin >= 8 {
			forms = append(forms, form{"in base64", encoded[begin:end], false})
		}
	}
	return forms
}

// The search finds what it is for.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"a name": "Quarrington's"}
	for what, text := range map[string]string{
		"as it is":            `{"msg":"call","title":"Mrs Quarrington's radiator"}`,
		"in another case":     "MRS QUARRINGTON'S RADIATOR",
		"in a message's form": "\n\x16\x12\x12\"Mrs Quarrington's\"",
		"escaped for a URL":   "external_id=Mrs%20Quarrington%27s",
		"in hexadecimal":      fmt.Sprintf("%x", "Mrs Quarrington's"),
		"in base64":           base64.StdEncoding.EncodeToString([]byte("Miss: Quarrington's")),
		"in base64, moved":    base64.StdEncoding.EncodeToString([]byte("Miss Quarrington's")),
		"in base64, again":    base64.RawURLEncoding.EncodeToString([]byte("Mrs Quarrington's")),
	} {
		if len(leaks(map[string]string{what: text}, secrets)) != 1 {
			t.Errorf("%s: nothing is found in %q", what, text)
		}
	}
	if found := leaks(map[string]string{"a log": "nothing of the kind"}, secrets); len(found) != 0 {
		t.Errorf("found %q where there is nothing", found)
	}
}

// refuseCalls makes calls that are refused, since what is wrong is easily logged.
func (h *harness) refuseCalls(i *integrator, order map[string]string) {
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
		{http.MethodPost, "/work-orders", "", with("description", "Quarrington\x00"), http.StatusBadRequest},
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
			h.t.Errorf("a token request is answered %d, want %d", response.StatusCode, status)
		}
	}
}

// temporalData returns what Temporal holds of each workflow: its description with
// search attributes and memo, its current details and its history. The messages
// are in their wire form, in which payloads stand as they are.
func (h *harness) temporalData() map[string]string {
	h.t.Helper()
	ctx := h.t.Context()
	list, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000})
	if err != nil || len(list.GetNextPageToken()) > 0 {
		h.t.Fatalf("list the workflows: %v, %d on the first page", err, len(list.GetExecutions()))
	}
	held := map[string]string{}
	add := func(id string, messages ...proto.Message) {
		for _, m := range messages {
			text, err := proto.Marshal(m)
			if err != nil {
				h.t.Fatal(err)
			}
			held[id] += string(text)
		}
	}
	for _, w := range list.GetExecutions() {
		id, run := w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId()
		add(id, w)
		events := h.temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				h.t.Fatalf("the history of %s: %v", id, err)
			}
			add(id, event)
		}
		description, err := h.temporal.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			h.t.Fatalf("describe %s: %v", id, err)
		}
		add(id, description)
		details, err := h.temporal.QueryWorkflow(ctx, id, run, "__temporal_workflow_metadata")
		if err != nil {
			h.t.Fatalf("the current details of %s: %v", id, err)
		}
		var metadata sdk.WorkflowMetadata
		if err := details.Get(&metadata); err != nil {
			h.t.Fatalf("the current details of %s: %v", id, err)
		}
		add(id, &metadata)
	}
	return held
}
