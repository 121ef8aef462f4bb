package e2e

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.temporal.io/api/enums/v1"
	"go.yaml.in/yaml/v3"

	"millwright/mail/mailtest"
	"millwright/workflows"
)

// Files for operators.
const (
	dashboardFile = "../docs/grafana/millwright.json"
	alertsFile    = "../docs/alerts/millwright.yaml"
	mutesFile     = "../docs/alerts/alertmanager.yaml"
	docsFile      = "../docs/observability.md"
)

// metricsAt returns the metrics that a process serves.
func metricsAt(t testing.TB, address string) string {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the metrics at %s: status %d, error %v", address, response.StatusCode, err)
	}
	return string(text)
}

func scrape(t testing.TB, address string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metricsAt(t, address)))
	if err != nil {
		t.Fatalf("the metrics at %s: %v", address, err)
	}
	return families
}

// value sums the counters, gauges and histogram counts of the name whose labels have
// the given values (name, value, name, value).
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// dashboard is the part of the Grafana file that the test reads.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		Type, Title string
		Targets     []struct{ Expr string }
	}
}

// alerts is the part of the rule file that the test reads.
type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For string
			Labels           map[string]string
			Annotations      map[string]string
		}
	}
}

// metricNames finds the metrics of the processes in a PromQL expression.
var metricNames = regexp.MustCompile(`\b(millwright|temporal|go|process)_[a-z0-9_]+`)

func readText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readInto(t *testing.T, file string, unmarshal func([]byte, any) error, into any) {
	t.Helper()
	if err := unmarshal([]byte(readText(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Every metric is counted when its event happens, has a help text and is documented.
// Every metric in the dashboard and the alerts exists.
func TestDashboardAndAlertsHaveTheirMetrics(t *testing.T) {
	t.Parallel()
	taking, failing, gone := newReceiver(t), newReceiver(t), newReceiver(t)
	failing.respondWith(always(http.StatusInternalServerError))
	gone.respondWith(always(http.StatusGone))
	mailServer := mailtest.NewServer(t, mailtest.Options{})
	apiMetrics, _ := freePort(t)
	workerMetrics, _ := freePort(t)
	h := newMailHarness(t, mailServer, settings{"WEBHOOK_RETRY_SCHEDULE": "1h", "WEBHOOK_SHUTOFF_AFTER": "1ms"}, taking, failing, gone)
	h.settings["METRICS_ADDR"] = workerMetrics
	h.startWorker()
	h.startAPI(settings{"METRICS_ADDR": apiMetrics})
	i := h.integrator()

	id := h.createOrder(i, "Replace filter", []string{"worker"}, false)
	awaitDelivery(t, taking, id)
	h.awaitAttempts(h.deliveryTo(2, id), "retrying", 500)
	failed := h.deliveryTo(3, id)
	h.awaitAttempts(failed, "retrying", 410)
	if _, err := h.db.Exec(t.Context(), `UPDATE open_deliveries SET next_attempt_at = now() WHERE id = $1`, failed); err != nil {
		t.Fatal(err)
	}
	h.awaitWorkflow(workflows.DeliveryID(failed), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if err := h.temporal.SignalWorkflow(t.Context(), workflows.DeliveryID(failed), "", workflows.SignalWake, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, deliveryLimit, "the address that failed for good is off", func() bool {
		return h.count(`SELECT count(*) FROM webhooks WHERE NOT enabled`) == 1
	})
	if response, err := i.call("GOSSIP", "/work-orders/"+managerEmail, "", nil); err != nil || response.status != http.StatusNotFound && response.status != http.StatusMethodNotAllowed {
		t.Errorf("an unknown method: status %d, %v", response.status, err)
	}
	if response, err := i.call(http.MethodGet, "/work-orders/"+managerName, "", nil); err != nil || response.status != http.StatusNotFound {
		t.Errorf("a missing work order: status %d, %v", response.status, err)
	}
	if response, err := directClient.Get(h.settings["MILLWRIGHT_PUBLIC_URL"] + "/console/sign-in"); err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the page to sign in: %v, %v", response, err)
	}

	var api, worker map[string]*dto.MetricFamily
	wanted := func(families *map[string]*dto.MetricFamily, name string, least float64, labels ...string) func() bool {
		return func() bool { return value(*families, name, labels...) >= least }
	}
	happened := map[string]func() bool{
		"creates by route": wanted(&api, "millwright_http_requests_total", 1, "method", "POST", "route", "/v1/work-orders", "status", "201"),
		"failed reads":     wanted(&api, "millwright_http_requests_total", 1, "method", "GET", "route", "/v1/work-orders/:id", "status", "404"),
		"invented methods": wanted(&api, "millwright_http_requests_total", 1, "method", "other"),
		"errors":           wanted(&api, "millwright_http_rejections_total", 1, "code", "not_found"),
		"durations":        wanted(&api, "millwright_http_request_duration_seconds", 1, "method", "POST", "route", "/v1/work-orders"),
		"wakes":            wanted(&api, "millwright_wakes_total", 1, "outcome", "sent"),
		"requests":         wanted(&api, "temporal_request_total", 1, "operation", "SignalWithStartWorkflowExecution"),
		"pages":            wanted(&api, "millwright_console_requests_total", 1, "route", "/console/sign-in"),
		"connections":      wanted(&api, "millwright_database_acquires_total", 1),
		"accepted":         wanted(&worker, "millwright_delivery_attempts_total", 1, "outcome", "2xx"),
		"failed":           wanted(&worker, "millwright_delivery_attempts_total", 1, "outcome", "5xx"),
		"gone":             wanted(&worker, "millwright_delivery_attempts_total", 1, "outcome", "4xx"),
		"latency":          wanted(&worker, "millwright_delivery_latency_seconds", 1),
		"attempts' length": wanted(&worker, "millwright_delivery_attempt_duration_seconds", 3),
		"failed for good":  wanted(&worker, "millwright_deliveries_failed_total", 1),
		"kept":             wanted(&worker, "millwright_deliveries_failed", 1),
		"off by failing":   wanted(&worker, "millwright_addresses_turned_off", 1),
		"turned off":       wanted(&worker, "millwright_addresses_turned_off_total", 1),
		"addresses off":    wanted(&worker, "millwright_addresses_off", 1),
		"failing":          wanted(&worker, "millwright_addresses_failing", 1),
		"retries":          wanted(&worker, "millwright_deliveries_retrying", 1),
		"mails":            wanted(&worker, "millwright_mails_total", 1, "outcome", "sent"),
		"sweeps":           wanted(&worker, "millwright_sweep_last_success_timestamp_seconds", 1e9),
		"counts":           wanted(&worker, "millwright_backlog_counted_timestamp_seconds", 1e9),
		"slots":            wanted(&worker, "temporal_worker_task_slots_available", 1),
		"waits":            wanted(&worker, "temporal_workflow_task_schedule_to_start_latency_seconds", 1),
		"build": func() bool {
			return value(api, "millwright_build_info", "command", "api") == 1 && value(worker, "millwright_build_info", "command", "worker") == 1
		},
	}
	eventually(t, deliveryLimit, "everything is counted", func() bool {
		api, worker = scrape(t, apiMetrics), scrape(t, workerMetrics)
		for what, counted := range happened {
			if !counted() {
				t.Logf("not yet: %s", what)
				return false
			}
		}
		return true
	})
	all := maps.Clone(api)
	maps.Copy(all, worker)
	checkDocumented(t, all)
	checkLabels(t, h, all)

	var d dashboard
	readInto(t, dashboardFile, json.Unmarshal, &d)
	named := 0
	for _, panel := range d.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q has no targets", panel.Title)
		}
		for _, target := range panel.Targets {
			named += checkNames(t, "panel "+panel.Title, target.Expr, all)
		}
	}
	var rules alerts
	readInto(t, alertsFile, yaml.Unmarshal, &rules)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			named += checkNames(t, rule.Alert, rule.Expr, all)
			if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s lacks its summary or severity", rule.Alert)
			}
		}
	}
	if named < 60 {
		t.Errorf("found only %d names in the expressions", named)
	}
}

// Every alert links to its own section of the documentation, and every such section has
// its alert. Alerts that mute others, and those that they mute, exist.
func TestAlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{} // by anchor; true once an alert links to it
	for _, heading := range regexp.MustCompile(`(?m)^### (Millwright\w+)$`).FindAllStringSubmatch(readText(t, docsFile), -1) {
		sections[strings.ToLower(heading[1])] = false
	}
	var rules alerts
	readInto(t, alertsFile, yaml.Unmarshal, &rules)
	var names []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			file, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
			known, exists := sections[anchor]
			if file != "docs/observability.md" || !exists || known || anchor != strings.ToLower(rule.Alert) {
				t.Errorf("%s has the runbook_url %q", rule.Alert, rule.Annotations["runbook_url"])
			}
			sections[anchor] = true
		}
	}
	for anchor, known := range sections {
		if !known {
			t.Errorf("the section %s is about no alert", anchor)
		}
	}
	muted := regexp.MustCompile(`Millwright\w+`).FindAllString(readText(t, mutesFile), -1)
	for _, name := range muted {
		if !slices.Contains(names, name) {
			t.Errorf("there is no alert %s", name)
		}
	}
	if len(muted) < 6 {
		t.Errorf("%s names %d alerts", mutesFile, len(muted))
	}
}

// checkNames checks that the expression's metrics exist, and returns their number.
func checkNames(t *testing.T, where, expression string, all map[string]*dto.MetricFamily) int {
	t.Helper()
	names := metricNames.FindAllString(expression, -1)
	for _, name := range names {
		family := all[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if family == nil {
				if base := all[strings.TrimSuffix(name, suffix)]; base.GetType() == dto.MetricType_HISTOGRAM {
					family = base
				}
			}
		}
		if family == nil {
			t.Errorf("%s uses %s, which does not exist", where, name)
		}
	}
	if len(names) == 0 {
		t.Errorf("%s uses no metric: %s", where, expression)
	}
	return len(names)
}

// checkDocumented compares the product's metrics with the documented ones.
func checkDocumented(t *testing.T, all map[string]*dto.MetricFamily) {
	t.Helper()
	listed := map[string]bool{}
	for _, cell := range regexp.MustCompile("(?m)^\\| `millwright_[^|]*").FindAllString(readText(t, docsFile), -1) { // several in a row
		for _, name := range regexp.MustCompile("millwright_[a-z_]+").FindAllString(cell, -1) {
			listed[name] = true
		}
	}
	for name, family := range all {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help text", name)
		}
		if strings.HasPrefix(name, "millwright_") && !listed[name] {
			t.Errorf("the documentation lacks %s", name)
		}
	}
	for name := range listed {
		if all[name] == nil {
			t.Errorf("the documentation lists %s, which does not exist", name)
		}
	}
}

// checkLabels checks that labels contain no ids, people or invented names.
func checkLabels(t *testing.T, h *harness, all map[string]*dto.MetricFamily) {
	t.Helper()
	ids := regexp.MustCompile(`\b[a-z]{2,5}_[0-9a-hjkmnp-tv-z]{26}\b`)
	for name, family := range all {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				v := l.GetValue()
				if ids.MatchString(v) || strings.Contains(v, "@") || strings.Contains(v, "Quarrington") || strings.Contains(v, "GOSSIP") ||
					strings.Contains(v, h.org.clientID) {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), v)
				}
			}
		}
		if n := len(family.GetMetric()); n > 200 {
			t.Errorf("%s has %d series", name, n)
		}
	}
}
