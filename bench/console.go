package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// consoleAim is how long a page may take to its first byte, for one caller, in 95 of 100
// requests.
type consoleAim struct {
	name string
	most time.Duration
}

var (
	aimRecord = consoleAim{"console: a record", 30 * time.Millisecond}
	aimList   = consoleAim{"console: a list", 50 * time.Millisecond}
	aimLevel  = consoleAim{"console: a level of the tree", 50 * time.Millisecond}
	aimSearch = consoleAim{"console: a sparse filter or a search", 150 * time.Millisecond}
	aimChart  = consoleAim{"console: charts", 250 * time.Millisecond}
)

// consolePage is a page that is measured.
type consolePage struct {
	name, path string
	aim        consoleAim
}

// consolePages are the pages of the console.
func consolePages(found consoleRecords, now time.Time) []consolePage {
	at := func(ago time.Duration) string { return url.QueryEscape(now.Add(-ago).Format("2006-01-02T15:04")) }
	const day = 24 * time.Hour
	hour := "from=" + at(10*day) + "&to=" + at(10*day-time.Hour)
	const building = "loc_00000000000000000000000001" // of 100, with 200 rooms
	address, integration := "/webhooks/"+found.webhook, "/integrations/"+found.integration
	pages := []consolePage{
		{"start", "", aimList},
		{"integrations", "/integrations", aimList},
		{"integration", integration, aimRecord},
		{"integration: can it see a work order?", integration + "?see=" + found.changed, aimRecord},
		{"integration: before it is deleted", integration + "/delete", aimRecord},
		{"address", address, aimRecord},
		{"address: sending what was missed", address + "/missed", aimRecord},
		{"address: before it is deleted", address + "/delete", aimRecord},
		{"delivery", "/deliveries/" + found.delivered, aimRecord},
		{"delivery that failed", "/deliveries/" + found.failed, aimRecord},
		{"inventory: its top", "/inventory", aimLevel},
		{"inventory: a level", "/inventory?open=" + building, aimLevel},
		{"node with those directly below", "/inventory/" + building, aimLevel},
		{"node: work orders", "/inventory/" + building + "?tab=work-orders", aimList},
		{"node: feedback", "/inventory/" + building + "?tab=feedback", aimList},
		{"node: assignees", "/inventory/" + building + "?tab=assignees", aimList},
		{"node: label", "/inventory/" + building + "/label", aimRecord},
		{"inventory: search", "/inventory?q=room+77", aimSearch},
		{"inventory: search that almost all match", "/inventory?q=o", aimSearch},
		{"inventory: search without a match", "/inventory?q=nowhere", aimSearch},
		{"people", "/people", aimList},
		{"people: next page", "/people?after=idn_20000000000000000000000100&after_name=8", aimList},
		{"people: search", "/people?q=abc", aimSearch},
		{"people: search without a match", "/people?q=nowhere", aimSearch},
		{"person", "/people/" + found.person, aimRecord},
		{"person: before access ends", "/people/" + found.person + "/deactivate", aimRecord},
		{"permission definitions", "/people/definitions", aimList},
		{"people with a permission definition", "/people?definition=" + consoleDefinition, aimList},
		{"teams", "/teams", aimList},
		{"teams: search without a match", "/teams?q=nowhere", aimSearch},
		{"team of everyone", "/teams/" + consoleTeam, aimList},
		{"team of everyone: search", "/teams/" + consoleTeam + "?q=abc", aimSearch},
		{"team: people to add", "/teams/" + consoleSmallTeam + "/members", aimList},
		{"team: before it is deleted", "/teams/" + consoleTeam + "/delete", aimRecord},
		{"person in all teams", "/people/" + consoleMember, aimRecord},
		{"forms", "/forms", aimList},
		{"form", "/forms/" + consoleForm, aimRecord},
		{"account", "/account", aimRecord},
		{"log", "/log", aimList},
		{"log: a rare action", "/log?what=person", aimSearch},
		{"log: an action that is not there", "/log?what=issue", aimSearch},
		{"log: another person", "/log?who=" + found.person, aimSearch},
		{"log: a record", "/log?record=" + found.changed, aimSearch},
		{"log: an hour ten days ago", "/log?" + hour, aimSearch},
		{"notices", "/notices", aimList},
		{"charts of all deliveries, 30 days", "/charts/deliveries?time=30d", aimChart},
		{"charts of the address, 30 days", address + "/charts?time=30d", aimChart},
		{"chart of work orders, 30 days", "/work-orders/charts", aimChart},
		{"feedback", "/feedback", aimList},
		{"feedback: open", "/feedback?state=open", aimSearch},
		{"feedback: another creator", "/feedback?by=" + found.person, aimSearch},
		{"feedback: giving some", "/feedback/new", aimRecord},
		{"chart of calls, 30 days", integration + "/charts?time=30d", aimChart},
	}
	for _, list := range []struct{ of, path string }{{"deliveries", "/deliveries"}, {"deliveries of the address", address + "/deliveries"}} {
		pages = append(pages, consolePage{list.of, list.path, aimList}, consolePage{list.of + ": from the failed one on", list.path + "?before=" + found.failed, aimList})
		for _, filter := range []struct{ name, query string }{
			{"failed", "status=failed"}, {"pending", "status=pending"}, {"skipped", "status=skipped"}, {"delivered", "status=delivered"},
			{"2xx", "response=2xx"}, {"5xx", "response=5xx"}, {"4xx", "response=4xx"}, {"no response", "response=none"},
			{"a type that is not there", "type=issue.created"}, {"a type that all have", "type=work_order.updated"},
			{"a record", "record=" + found.changed}, {"an hour ten days ago", hour},
			{"failed with 5xx, an hour ten days ago", "status=failed&response=5xx&" + hour},
		} {
			pages = append(pages, consolePage{list.of + ": " + filter.name, list.path + "?" + filter.query, aimSearch})
		}
	}
	return append(append(pages, workOrderPages("")...),
		consolePage{"redelivery of all that failed: its count", "/deliveries/redeliver-matching?status=failed", aimSearch},
		consolePage{"redelivery of all with 5xx at the address: its count", "/deliveries/redeliver-matching?response=5xx&webhook=" + found.webhook, aimSearch})
}

// benchConsole measures the pages of the console with a big customer's rows.
func benchConsole(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "console")
	if err != nil {
		return err
	}
	defer in.close()
	customer := changeSubscription(1)
	customer.integrations, customer.person = len(growthIntegrations), true
	if err := in.subscribe(ctx, customer); err != nil {
		return err
	}
	var found consoleRecords
	err = in.timed(r, "console: rows created by SQL in", func() error {
		if err := in.seed(ctx, o.records); err != nil {
			return err
		}
		found, err = in.plantConsole(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	for _, aim := range []consoleAim{aimRecord, aimList, aimLevel, aimSearch, aimChart} {
		r.add(aim.name, milliseconds(aim.most), "ms")
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	times := max(20, int(4*load.Seconds()))
	for _, page := range consolePages(found, time.Now().UTC()) {
		if err := in.benchPage(ctx, r, client, page, consoleToken, times); err != nil {
			return fmt.Errorf("%s: %w", page.name, err)
		}
	}
	for _, page := range workOrderPages("few nodes: ") {
		if err := in.benchPage(ctx, r, client, page, fewNodesToken, times); err != nil {
			return fmt.Errorf("%s: %w", page.name, err)
		}
	}
	return nil
}

// workOrderPages are the lists and boards of work orders.
func workOrderPages(prefix string) []consolePage {
	pages := []consolePage{
		{"all", "", aimList}, {"open", "status=open", aimList}, {"board", "view=board", aimList}, {"mine", "assignee=me", aimList},
		{"a node and below", "node=" + plantedNode(1), aimSearch}, {"one node", "only=yes&node=" + plantedNode(firstOfFewNodes), aimSearch},
		{"overdue", "due=overdue", aimSearch}, {"high priority", "priority=high", aimSearch}, {"high priority, closed", "priority=high&status=complete", aimSearch},
		{"waiting for a review", "review=any", aimSearch}, {"assigned to an integration", "assignee=Integration+1", aimSearch},
		{"created by a person", "kind=person", aimSearch}, {"created by an integration", "by=Integration+1", aimSearch},
		{"an external id that is not there", "external=ERP-1", aimSearch}, {"a number", "q=123456", aimSearch},
		{"a rare word", "q=boiler", aimSearch}, {"the beginning of a rare word", "q=boil", aimSearch}, {"a word that is not there", "q=nowhere", aimSearch},
		{"a word that all have", "q=work", aimSearch}, {"two letters that all have", "q=wo", aimSearch},
		{"a word that the older ones have", "q=imported", aimSearch}, {"a common and a rare word", "q=order+boiler", aimSearch},
		{"board of the overdue", "view=board&due=overdue", aimSearch},
	}
	for i := range pages {
		pages[i].name, pages[i].path = prefix+"work orders: "+pages[i].name, "/work-orders?"+pages[i].path
	}
	return pages
}

// plantedNode is the id of the n-th node.
func plantedNode(n int) string { return fmt.Sprintf("loc_%026x", n) }

// benchPage measures a page in rounds, after requests that make its plans.
func (in *installation) benchPage(ctx context.Context, r *report, client *http.Client, page consolePage, token string, times int) error {
	const warm = 10
	var slowest, aims []float64
	before := in.usage()
	for round := range rounds + 1 {
		n := times
		if round == 0 {
			n = warm
		}
		var took waits
		for range n {
			first, err := in.firstByte(ctx, client, page.path, token)
			if errors.Is(err, errUnavailable) {
				r.add(page.name+": 503 after", milliseconds(first), "ms")
				return nil
			}
			if err != nil {
				return err
			}
			took = append(took, first)
		}
		if round == 0 {
			before = in.usage()
			continue
		}
		slowest, aims = append(slowest, milliseconds(took.percentile(95))), append(aims, milliseconds(page.aim.most))
	}
	used := in.usage().since(before)
	r.compareRounds(page.name+", p95", slowest, aims, "ms", page.aim.name).Limit = 1
	used.report(r, page.name, times*rounds)
	return nil
}

// errUnavailable says that the page was not served in time.
var errUnavailable = errors.New("503")

// firstByte requests a page of the console and returns the time to its first byte.
func (in *installation) firstByte(ctx context.Context, client *http.Client, path, token string) (took time.Duration, err error) {
	var started time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(started) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/console"+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept-Encoding", "gzip")
	request.Header.Set("Cookie", "session="+token)
	started = time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return took, errUnavailable
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s returned %d", path, response.StatusCode)
	}
	return took, nil
}
