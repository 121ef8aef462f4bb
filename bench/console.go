package main

import (
	_ "embed"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// consoleDeliveries are the first address's deliveries, over the time that they are kept.
const consoleDeliveries = 1_000_000

// pageAims limit a page's time to its first byte in milliseconds, for one caller, in 95 of 100
// requests, by the kind of page. Files have none: they are only reported.
var pageAims = map[string]float64{"record": 30, "list": 50, "level": 50, "search": 150, "chart": 250}

// consoleIDs are records whose pages are measured, besides those that plantConsole finds, and the people
// who open them: few and one have permissions on fifty nodes and on one, the member is in every team.
// Everyone has permissions on the room; the work orders are there.
var consoleIDs = map[string]any{
	"building":   "loc_00000000000000000000000001", // of 100, with 200 rooms
	"room":       "loc_000000000000000000000003e9", // room 1001
	"site":       "loc_30000000000000000000000000", // of 1,000 halls
	"hall":       "loc_30000000000000000000000003",
	"team":       "idn_30000000000000000000000001", // everyone's
	"small_team": "idn_30000000000000000000000002",
	"definition": "def_30000000000000000000000001",
	"form":       "frm_30000000000000000000000001",
	"admin":      changeSubscription(1).Email(),
	"few":        "idn_20000000000000000000000002",
	"one":        "idn_20000000000000000000000003",
	"member":     "idn_20000000000000000000000001",
}

// benchConsole measures the pages of the console with a big customer's rows.
func benchConsole(b *bench) {
	in := b.install("console")
	defer in.close()
	customer := changeSubscription(1)
	customer.Integrations = len(visibilities)
	in.subscribe(customer)
	in.plantWorkOrders(b.options.records)
	found := in.plantConsole()
	in.exec(`VACUUM ANALYZE`)
	in.startAPI()
	in.exec(`CHECKPOINT`)
	sessions := map[string]string{}
	for _, name := range []string{"admin", "few", "one", "member"} {
		sessions[name] = in.newSession(name, consoleIDs[name])
	}
	for _, kind := range slices.Sorted(maps.Keys(pageAims)) {
		in.add("aim: a "+kind, pageAims[kind], "ms")
	}
	for _, page := range consolePages(found, time.Now().UTC()) {
		if named(b.options.pages, page.name) {
			in.benchPage(page, sessions[page.person])
		}
	}
}

// plantConsole creates what the pages of a big customer show, next to the work orders and nodes
// of growth. It returns ids of records whose pages are measured.
func (in *installation) plantConsole() map[string]any {
	now := time.Now().UTC()
	from := now.Add(6*time.Hour - models.EventRetention)
	in.makePartitions(from.Add(-day), now)
	args := arguments{
		"organization": in.organization, "creator": in.integration, "webhook": in.webhookID,
		"from": from, "to": now, "nodes": benchNodes, "records": in.options.records, "deliveries": consoleDeliveries,
	}
	maps.Copy(args, consoleIDs)
	in.execFile("console.sql", args, "")
	in.execFile("console_records.sql", args, "")
	check(store.FoldTables(in.ctx, in.pool))
	in.exec(store.RebuildPositions)
	in.bulkLoad([]string{"events", "deliveries", "open_deliveries", "attempts", "log"}, func() {
		in.plant(consoleDeliveries, "console_deliveries.sql", args)
	})
	rows := must(in.pool.Query(in.ctx, string(must(sqlFiles.ReadFile("sql/console_found.sql"))), args))
	return must(pgx.CollectExactlyOneRow(rows, pgx.RowToMap))
}

// consolePage is a page that is measured, with a person's session.
type consolePage struct{ name, kind, path, person string }

//go:embed console_pages.txt
var consolePagesFile string

// consolePages returns the pages of the file, of records that were found.
func consolePages(found map[string]any, now time.Time) (pages []consolePage) {
	at := func(ago time.Duration) string { return url.QueryEscape(now.Add(-ago).Format("2006-01-02T15:04")) }
	file := template.Must(template.New("pages").Option("missingkey=error").Parse(consolePagesFile))
	// read adds the pages of the kind of person in the file, opened by a person, of a node.
	read := func(kind, prefix, person string, node any) {
		values := map[string]any{"hour": "from=" + at(10*day) + "&to=" + at(10*day-time.Hour), "node": node}
		maps.Copy(values, consoleIDs)
		maps.Copy(values, found)
		var text strings.Builder
		check(file.Execute(&text, values))
		for line := range strings.Lines(text.String()) {
			if column := strings.Split(strings.TrimSuffix(line, "\n"), " | "); column[0] == kind {
				pages = append(pages, consolePage{prefix + column[2], column[1], column[3], person})
			}
		}
	}
	read("admin", "", "admin", consoleIDs["building"])
	read("each", "", "admin", consoleIDs["building"])
	read("each", "few nodes: ", "few", consoleIDs["room"])
	read("each", "one node: ", "one", consoleIDs["room"])
	read("teams", "all teams: ", "member", consoleIDs["room"])
	return pages
}

// benchPage measures a page in rounds, after requests that make its plans.
func (in *installation) benchPage(page consolePage, token string) {
	times, warm := max(20, int(4*in.load.Seconds())), 10
	if page.kind == "file" {
		times, warm = 2, 1
	}
	open := func(times int) (took waits) {
		for range times {
			took = append(took, in.firstByte(page.path, token))
		}
		return took
	}
	open(warm)
	var slowest []float64
	requests := in.measure(func() int {
		for range rounds {
			slowest = append(slowest, milliseconds(open(times).percentile(95)))
		}
		return times * rounds
	})
	in.compare(page.name+", p95", median(slowest), "ms", "aim: a "+page.kind)
	in.addCPU(page.name, requests)
}

// firstByte requests a page of the console and returns the time to its first byte.
func (in *installation) firstByte(path, token string) (took time.Duration) {
	r := request(http.MethodGet, "http://"+in.address+path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Cookie", "session="+token)
	started := time.Now()
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(started) }}
	must(fetch(r.WithContext(httptrace.WithClientTrace(in.ctx, trace))))
	return took
}
