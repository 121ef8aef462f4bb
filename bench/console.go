package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// consoleAim limits a page's time to its first byte, for one caller, in 95 of 100
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
	aimChart  = consoleAim{"console: charts and counts, after the page", 250 * time.Millisecond}
	// noAim is for files, which are only reported.
	noAim = consoleAim{}
)

// consolePage is a page that is measured. token is of the session that requests it, that of
// the administrator if it is empty.
type consolePage struct {
	name, path string
	aim        consoleAim
	token      string
}

// benchConsole measures the pages of the console with a big customer's rows.
func benchConsole(b *bench) {
	in := b.install("console")
	customer := changeSubscription(1)
	customer.integrations, customer.person, customer.feedback = len(visibilities), true, true
	in.subscribe(customer)
	var found consoleRecords
	in.timed("console: rows created by SQL in", func() {
		in.plantWorkOrders(b.options.records)
		found = in.plantConsole()
	})
	in.exec(`VACUUM ANALYZE`)
	in.startAPI()
	in.exec(`CHECKPOINT`)
	for _, aim := range []consoleAim{aimRecord, aimList, aimLevel, aimSearch, aimChart} {
		in.add(aim.name, milliseconds(aim.most), "ms")
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	for _, page := range consolePages(found, time.Now().UTC()) {
		if named(b.options.pages, page.name) {
			in.benchPage(client, page)
		}
	}
}

// benchPage measures a page in rounds, after requests that make its plans.
func (in *installation) benchPage(client *http.Client, page consolePage) {
	in.begin(page.name)
	times, warm := max(20, int(4*in.load.Seconds())), 10
	if page.aim == noAim {
		times, warm = 2, 1
	}
	var slowest, aims []float64
	request := func(times int) (took waits) {
		for range times {
			took = append(took, in.firstByte(client, page.path, cmp.Or(page.token, consoleToken)))
		}
		return took
	}
	failed := attempt(func() {
		request(warm)
		requests := in.measure(func() int {
			for range rounds {
				slowest, aims = append(slowest, milliseconds(request(times).percentile(95))), append(aims, milliseconds(page.aim.most))
			}
			return times * rounds
		})
		if page.aim == noAim {
			in.add(page.name+", p95", median(slowest), "ms")
		} else {
			in.compareRounds(page.name+", p95", slowest, aims, "ms", page.aim.name).Limit = 1
		}
		requests.cpu(in.report, page.name)
	})
	if failed != nil {
		check(context.Cause(in.ctx))
		in.addFailure(page.name, failed)
	}
}

// firstByte requests a page of the console and returns the time to its first byte.
func (in *installation) firstByte(client *http.Client, path, token string) (took time.Duration) {
	var started time.Time
	ctx := httptrace.WithClientTrace(in.ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(started) }})
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/console"+path, http.NoBody))
	request.Header.Set("Accept-Encoding", "gzip")
	request.Header.Set("Cookie", "session="+token)
	started = time.Now()
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	must(io.Copy(io.Discard, response.Body))
	if response.StatusCode != http.StatusOK {
		check(fmt.Errorf("GET %s returned %d after %.0f ms", path, response.StatusCode, milliseconds(took)))
	}
	return took
}
