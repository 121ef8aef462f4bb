package stack

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
)

// prefixed returns a function that prints a program's line.
func (r *runner) prefixed(name string) func(line string) {
	return func(line string) { fmt.Fprintf(r.out, "%-7s | %s\n", name, line) }
}

// writeEnv writes the environment file for a second terminal.
func (r *runner) writeEnv() error {
	settings := slices.Concat(r.settings, []setting{
		{"MILLWRIGHT_URL", "http://" + r.cfg.api.address() + "/v1"},
		{"DEMO_CLIENT_ID", r.demo.ClientID},
		{"DEMO_CLIENT_SECRET", r.demo.ClientSecret},
		{"WEBHOOK_SECRET", r.demo.WebhookSecret},
		{"DEMO_PASSWORD", r.demo.People[demoPeople[0].key].Password},
	})
	if err := writeFile(envFile(r.cfg.dir), formatEnv(settings)); err != nil {
		return fmt.Errorf("cannot write %s: %w", envFile(r.cfg.dir), err)
	}
	return nil
}

// report prints the addresses of everything that runs, and a first command to try.
func (r *runner) report() {
	out := r.out
	api := "http://" + r.cfg.api.address()
	fmt.Fprintf(out, "\nMillwright is running.\n\n")
	fmt.Fprintf(out, "  Console            %s\n", api)
	for _, person := range demoPeople {
		if password := r.demo.People[person.key].Password; password != "" {
			fmt.Fprintf(out, "    %-16s %-42s %s\n", person.does, person.email, password)
		}
	}
	fmt.Fprintf(out, "  API                %s/v1, documentation at %s/docs\n", api, api)
	if r.cfg.ownTemporal {
		fmt.Fprintf(out, "  Temporal Web UI    %s\n", r.cfg.uiURL())
		for _, view := range uiViews {
			fmt.Fprintf(out, "    %-18s %s/namespaces/%s/workflows?%s\n", view.name, r.cfg.uiURL(), Namespace, url.Values{"query": {view.query}}.Encode())
		}
	}
	fmt.Fprintf(out, "  Metrics            http://%s/metrics (api), http://%s/metrics (worker)\n",
		r.cfg.apiMetrics.address(), r.cfg.workerMetrics.address())
	r.reportDemo(out, api)
	fmt.Fprintf(out, "\n  For a second terminal:  . %s\n", envFile(r.cfg.dir))
	fmt.Fprintf(out, "  Logs               %s, warnings here too\n", r.cfg.logs())
	if r.receiverRuns() {
		fmt.Fprintf(out, "  Demo's receiver    %s; r and Enter stops it\n", filepath.Join(r.cfg.logs(), "receiver.log"))
	} else if r.demo.WebhookSecret != "" {
		fmt.Fprintf(out, "  Demo's receiver    not running; r and Enter starts it\n")
	}
	fmt.Fprintf(out, "  Enter prints this again. Ctrl-C stops everything; the data is kept for the next run.\n\n")
}

// uiViews are the lists of workflows that operators need most. The Web UI takes a query in
// its address, but no columns.
var uiViews = []struct{ name, query string }{
	{"open work orders", `WorkflowType="WorkOrder" AND ExecutionStatus="Running"`},
	{"failing addresses", `AddressStatus IN ("failing","off") AND ExecutionStatus="Running"`},
	{"failing deliveries", `WorkflowType="Delivery" AND ExecutionStatus="Running"`},
}

func (r *runner) reportDemo(out io.Writer, url string) {
	if r.demo.ClientSecret == "" {
		return // only the import that creates it prints it
	}
	fmt.Fprintf(out, "\n  Demo integration, with every scope\n")
	fmt.Fprintf(out, "    client id        %s\n", r.demo.ClientID)
	fmt.Fprintf(out, "    client secret    %s\n", r.demo.ClientSecret)
	fmt.Fprintf(out, "\n  Try it:\n")
	fmt.Fprintf(out, `    curl -s -H "Authorization: Bearer $(curl -s -u %s -d grant_type=client_credentials %s/v1/oauth/token | sed 's/.*"access_token": *"\([^"]*\)".*/\1/')" %s/v1/me`+"\n",
		quote(r.demo.ClientID+":"+r.demo.ClientSecret), url, url)
}
