package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// connectorPrograms prepare the example connectors in examples/, by their languages, once: they
// return the command that runs one.
var connectorPrograms = map[string]func() ([]string, error){
	"Go": sync.OnceValues(func() ([]string, error) {
		program := filepath.Join(scratch, "erp-go")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir = "../examples/erp-go"
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build erp-go: %w\n%s", err, out)
		}
		return []string{program}, nil
	}),
	"TypeScript": sync.OnceValues(func() ([]string, error) {
		node, err := exec.LookPath("node")
		if err != nil {
			return nil, err
		}
		directory := filepath.Join(scratch, "erp-typescript")
		build := exec.Command("sh", "-c", `mkdir "$1" && cp -R package.json package-lock.json tsconfig.json src "$1" && cd "$1" &&
			npm ci --silent --no-audit --no-fund && npm run --silent build`, "sh", directory)
		build.Dir = "../examples/erp-typescript"
		if _, err := exec.LookPath("npm"); err != nil {
			return nil, err
		}
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build erp-typescript: %w\n%s", err, out)
		}
		return []string{node, filepath.Join(directory, "dist", "connector.js")}, nil
	}),
	"Python": sync.OnceValues(func() ([]string, error) {
		python, err := exec.LookPath("python3")
		return []string{python, "../examples/erp-python/connector.py"}, err
	}),
}

// connector is an example connector with its database and its webhook address.
type connector struct {
	t testing.TB
	// name begins the external ids of its orders.
	name    string
	program []string
	env     settings
	*receiver
	// created is the number of orders it was given.
	created int
}

// connectorStore is the content of a connector's store.
type connectorStore struct {
	WorkOrders map[string]string `json:"work_orders"`
	Outbox     []struct {
		Key         string
		WorkOrderID *string `json:"work_order_id"`
		Error       *string
	}
	Events int
}

// eachConnector runs a test of each language.
func eachConnector(t *testing.T, test func(t *testing.T, language string)) {
	t.Helper()
	for language := range connectorPrograms {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			test(t, language)
		})
	}
}

// newConnector makes a connector of the language. A language that is not installed skips the test,
// except in CI.
func newConnector(t *testing.T, language string) *connector {
	t.Helper()
	program, err := connectorPrograms[language]()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skipf("%s is not installed", language)
	}
	if err != nil {
		t.Fatalf("the connector in %s: %v", language, err)
	}
	listen, _ := freePort(t)
	r := newReceiver(t)
	r.server.Close()
	r.server = httptest.NewUnstartedServer(r) // only for the address
	r.server.URL = "http://" + listen
	r.events = everyEvent
	return &connector{t: t, name: language, program: program, receiver: r, env: settings{
		"PATH": os.Getenv("PATH"), "DATABASE": filepath.Join(t.TempDir(), "erp.db"), "LISTEN": listen, "WEBHOOK_SECRET": r.secret, "INTERVAL": "1",
	}}
}

// do runs a command of the connector to its end and returns what it prints and its status.
// No secret may be in what it prints.
func (c *connector) do(own settings, args ...string) (string, int) {
	c.t.Helper()
	command := exec.Command(c.program[0], append(c.program[1:len(c.program):len(c.program)], args...)...)
	command.Env = append(c.env.environ(), own.environ()...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	_ = command.Run() // the status says it
	for _, secret := range []string{c.env["MILLWRIGHT_CLIENT_SECRET"], c.secret} {
		if secret != "" && strings.Contains(out.String()+log.String(), secret) {
			c.t.Errorf("%v prints a secret", args)
		}
	}
	if status := command.ProcessState.ExitCode(); status != 0 && status != 137 {
		c.t.Errorf("%v ended with status %d: %s", args, status, log.String())
	}
	return out.String(), command.ProcessState.ExitCode()
}

// order puts a work order into the outbox.
func (c *connector) order(node, title string) {
	c.t.Helper()
	c.created++
	c.do(nil, "order", node, title, fmt.Sprintf("%s-%d", c.name, c.created))
}

func (c *connector) show() (stored connectorStore) {
	c.t.Helper()
	out, _ := c.do(nil, "show")
	if err := json.Unmarshal([]byte(out), &stored); err != nil {
		c.t.Fatalf("show: %v\n%s", err, out)
	}
	return stored
}

// begin starts the connector for good, without waiting for it.
func (c *connector) begin(name string, own settings) *process {
	c.t.Helper()
	env := maps.Clone(c.env)
	maps.Copy(env, own)
	return start(c.t, name, env.environ(), c.program[0], append(c.program[1:len(c.program):len(c.program)], "run")...)
}

// difference describes how what is stored differs from the service's records, "" if it
// does not.
func (c *connector) difference(h *harness) string {
	c.t.Helper()
	stored := c.show()
	rows, err := h.db.Query(c.t.Context(), `SELECT id, to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM work_orders`)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var id, changed string
		if err := rows.Scan(&id, &changed); err != nil {
			return err.Error()
		}
		n++
		if stored.WorkOrders[id] != changed {
			return fmt.Sprintf("%s changed at %s, stored is %q", id, changed, stored.WorkOrders[id])
		}
	}
	if len(stored.WorkOrders) != n {
		return fmt.Sprintf("%d work orders are stored, there are %d", len(stored.WorkOrders), n)
	}
	for _, order := range stored.Outbox {
		if order.WorkOrderID == nil || order.Error != nil {
			return fmt.Sprintf("an order is not sent: %+v", order)
		}
	}
	return ""
}

// checkOrders checks that each order became one work order.
func (c *connector) checkOrders(h *harness) {
	c.t.Helper()
	seen := map[string]bool{}
	for _, order := range c.show().Outbox {
		if order.WorkOrderID == nil || seen[*order.WorkOrderID] {
			c.t.Errorf("the order %s has no work order or that of another", order.Key)
			continue
		}
		seen[*order.WorkOrderID] = true
	}
	if n := h.count(`SELECT count(*) FROM work_orders WHERE external_id LIKE $1`, c.name+"-%"); n != c.created || len(seen) != n {
		c.t.Errorf("%d orders became %d work orders, %d are known", c.created, n, len(seen))
	}
}

// The example connectors lose and double nothing, whatever point of a write they are killed
// at, and store the newest state of every record.
func TestConnectorsLoseNothing(t *testing.T) {
	t.Parallel()
	eachConnector(t, func(t *testing.T, language string) {
		c := newConnector(t, language)
		// Until it listens, deliveries fail: on a slow machine for minutes.
		h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1s,1s,2s,2s,4s,4s,8s,8s" + strings.Repeat(",16s", 40)}, c.receiver)
		api := h.startAPI(nil)
		h.startWorker()
		maps.Copy(c.env, settings{
			"MILLWRIGHT_URL":       h.settings["MILLWRIGHT_PUBLIC_URL"] + "/v1",
			"MILLWRIGHT_CLIENT_ID": h.org.clientID, "MILLWRIGHT_CLIENT_SECRET": h.org.clientSecret,
		})
		i := h.integrator()
		for at, status := 1, -1; status != 0; at++ {
			if at <= 3 {
				c.order(i.node, fmt.Sprintf("Order %d", at))
				i.create(fmt.Sprintf("Made elsewhere %d", at))
			}
			_, status = c.do(settings{"CRASH_AT": strconv.Itoa(at)}, "once")
		}
		// A sync shows only what no transaction of another test in the same Postgres holds back.
		changes := newSyncState("id")
		eventually(t, recoveryLimit, "a sync shows every work order", func() bool {
			return changes.follow(i) == http.StatusOK && len(changes.records) == h.count(`SELECT count(*) FROM work_orders`)
		})
		c.do(nil, "once")
		if difference := c.difference(h); difference != "" {
			t.Error(difference)
		}
		// It also receives the webhooks, and is killed while it does.
		ids := i.workOrders()
		for _, at := range []string{"10", "25", "45"} {
			p := c.begin(language+" connector", settings{"CRASH_AT": at})
			i.renameAll(ids, "Renamed before point "+at)
			if status := p.wait(startLimit); status != 137 {
				t.Fatalf("the connector ended with status %d", status)
			}
		}
		p := c.begin(language+" connector", nil)
		p.awaitReady(startLimit, func() bool { return p.out.has("ready") })
		api.kill()
		c.order(i.node, "While the API is away")
		h.startAPI(nil)
		eventually(t, recoveryLimit, "the connector has everything", func() bool {
			return h.count(`SELECT count(*) FROM all_deliveries WHERE status <> 'delivered'`) == 0 && c.difference(h) == ""
		})
		if n, want := c.show().Events, h.count(`SELECT count(*) FROM events`); n != want {
			t.Errorf("%d events are stored, %d were sent", n, want)
		}
		c.checkOrders(h)
		p.terminate()
		if status := p.wait(startLimit); status != 0 {
			t.Errorf("after SIGTERM the connector ended with status %d", status)
		}
	})
}

// newConnectorAlone makes a connector whose API gives tokens and empty lists, unless respond
// responds and returns true.
func newConnectorAlone(t *testing.T, language string, respond func(http.ResponseWriter, *http.Request) bool) *connector {
	t.Helper()
	var mu sync.Mutex
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case respond(w, r):
		case r.URL.Path == "/oauth/token":
			fmt.Fprint(w, `{"access_token":"x","token_type":"Bearer"}`)
		default:
			fmt.Fprint(w, `{"data":[],"has_more":false,"sync_token":"s"}`)
		}
	}))
	t.Cleanup(api.Close)
	c := newConnector(t, language)
	maps.Copy(c.env, settings{"MILLWRIGHT_URL": api.URL, "MILLWRIGHT_CLIENT_ID": "id", "MILLWRIGHT_CLIENT_SECRET": "a secret of the test"})
	return c
}

// problem responds with an error.
func problem(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q}`, code)
	return true
}

// A connector waits as responses to calls and token requests say, in seconds or until a date,
// and then goes on.
func TestConnectorsWaitAsTold(t *testing.T) {
	t.Parallel()
	eachConnector(t, func(t *testing.T, language string) {
		waits := map[string][]string{ // what each path still asks for
			"/oauth/token": {"0", "Mon, 02 Nov 2026 09:00:00 GMT"},
			"/work-orders": {"0", "Mon, 02 Nov 2026 09:00:00 GMT", "soon"},
		}
		var asked atomic.Int32
		c := newConnectorAlone(t, language, func(w http.ResponseWriter, r *http.Request) bool {
			left := waits[r.URL.Path]
			if len(left) == 0 {
				return false
			}
			asked.Add(1)
			waits[r.URL.Path] = left[1:]
			w.Header().Set("Retry-After", left[0])
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		if _, status := c.do(nil, "once"); status != 0 || asked.Load() != 5 {
			t.Errorf("it was asked to wait %d times, want 5, and ended with status %d", asked.Load(), status)
		}
	})
}

// An order that the integration may not send now stays in the outbox, and is sent once it may.
func TestConnectorsKeepForbiddenOrders(t *testing.T) {
	t.Parallel()
	eachConnector(t, func(t *testing.T, language string) {
		var allowed atomic.Bool
		c := newConnectorAlone(t, language, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/oauth/token" || r.Method == http.MethodGet {
				return false
			}
			if !allowed.Load() {
				return problem(w, http.StatusForbidden, "insufficient_scope")
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"wo_1","number":1,"title":"Order","status":{"code":"open"},"changed_at":"2026-11-02T09:00:00.000Z"}`)
			return true
		})
		c.order("loc_1", "Order")
		for _, allow := range []bool{false, true} {
			allowed.Store(allow)
			if _, status := c.do(nil, "once"); status != 0 {
				t.Errorf("it ended with status %d", status)
			}
			order := c.show().Outbox[0]
			if order.Error != nil || allow != (order.WorkOrderID != nil) {
				t.Errorf("allowed %t: the order has the work order %v and the error %v", allow, order.WorkOrderID, order.Error)
			}
		}
	})
}

// A record that left the integration's view is removed from the copy: by the check that is due
// once a day, and after a token that is void.
func TestConnectorsForgetWhatTheyMayNotRead(t *testing.T) {
	t.Parallel()
	eachConnector(t, func(t *testing.T, language string) {
		const held = 205
		// hidden counts the first records, which cannot be read; void: tokens are rejected.
		var hidden, checks atomic.Int32
		var void atomic.Bool
		c := newConnectorAlone(t, language, func(w http.ResponseWriter, r *http.Request) bool {
			since, asked := r.URL.Query().Get("changed_since"), r.URL.Query().Get("id")
			ids := strings.Split(asked, ",")
			switch {
			case void.Load() && since == "s":
				return problem(w, http.StatusGone, "cursor_expired")
			case r.URL.Path != "/work-orders" || since == "s":
				return false
			case asked != "":
				checks.Add(1)
				if len(ids) > 100 {
					t.Errorf("%d ids are asked for at once", len(ids))
				}
			}
			var records []string
			for n := int(hidden.Load()); n < held; n++ {
				if id := fmt.Sprintf("wo_%03d", n); asked == "" || slices.Contains(ids, id) {
					records = append(records, fmt.Sprintf(`{"id":%q,"title":"T","status":{"code":"open"},"changed_at":"2026-11-02T09:00:00.000Z"}`, id))
				}
			}
			fmt.Fprintf(w, `{"data":[%s],"has_more":false,"sync_token":"s"}`, strings.Join(records, ","))
			return true
		})
		for _, step := range []struct {
			name           string
			hidden         int32
			void           bool
			own            settings
			stored, checks int
		}{
			{"at first", 0, false, nil, held, 3},
			{"before the check is due", 3, false, nil, held, 0},
			{"when it is due", 3, false, settings{"CHECK_INTERVAL": "0"}, held - 3, 3},
			{"after a void token", 105, true, nil, held - 105, 3},
		} {
			hidden.Store(step.hidden)
			void.Store(step.void)
			checks.Store(0)
			_, status := c.do(step.own, "once")
			if stored := len(c.show().WorkOrders); status != 0 || stored != step.stored || int(checks.Load()) != step.checks {
				t.Errorf("%s: %d records are stored after %d checks, status %d, want %d and %d", step.name, stored, checks.Load(), status, step.stored, step.checks)
			}
		}
	})
}
