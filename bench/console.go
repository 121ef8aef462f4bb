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
func benchConsole(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "console")
	if err != nil {
		return err
	}
	defer in.close()
	customer := changeSubscription(1)
	customer.integrations, customer.person, customer.feedback = len(growthIntegrations), true, true
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
	if _, err := in.pool.Exec(ctx, `CHECKPOINT`); err != nil {
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
		if !named(o.pages, page.name) {
			continue
		}
		if err := in.benchPage(ctx, r, client, page, times); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.fail(page.name, err)
		}
	}
	return nil
}

// benchPage measures a page in rounds, after requests that make its plans.
func (in *installation) benchPage(ctx context.Context, r *report, client *http.Client, page consolePage, times int) error {
	warm := 10
	if page.aim == noAim {
		times, warm = 2, 1
	}
	var slowest, aims []float64
	before := in.usage()
	for round := range rounds + 1 {
		n := times
		if round == 0 {
			n = warm
		}
		var took waits
		for range n {
			first, err := in.firstByte(ctx, client, page.path, cmp.Or(page.token, consoleToken))
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
	if page.aim == noAim {
		r.add(page.name+", p95", median(slowest), "ms")
	} else {
		r.compareRounds(page.name+", p95", slowest, aims, "ms", page.aim.name).Limit = 1
	}
	used.report(r, page.name, times*rounds)
	return nil
}

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
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s returned %d after %.0f ms", path, response.StatusCode, milliseconds(took))
	}
	return took, nil
}
