package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"millwright/mail/mailtest"
	"millwright/workflows"
)

const (
	// wakesEvery is the time between two creations of the quiet organization.
	wakesEvery = 500 * time.Millisecond
	// wakesWithin is how soon a new work order has its workflow and its mail, and
	// wakesLimit how long the bench waits for either.
	wakesWithin = 2 * time.Second
	wakesLimit  = 10 * time.Second
	wakesPoll   = 10 * time.Millisecond
	// readsShare is the share of the quiet rate that reads are to keep.
	readsShare = 0.5
)

// benchWakes measures how soon the new work orders of one organization have their
// workflows, and its people their mail, after another has created many at once, and how
// many reads are left meanwhile.
func benchWakes(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "wakes")
	if err != nil {
		return err
	}
	defer in.close()
	w := wakes{installation: in}
	if w.mails, err = mailtest.Start(mailtest.Options{}); err != nil {
		return err
	}
	defer w.mails.Close()
	in.settings["SMTP_URL"], in.settings["MAIL_FROM"] = w.mails.URL(), "Millwright <no-reply@millwright.example.com>"
	subscription := changeSubscription(1)
	subscription.person = true
	w.email = subscription.email()
	if err := in.subscribe(ctx, subscription); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	burst := subscription
	burst.key = "burst"
	if w.busy, err = in.tenantOf(ctx, burst, 1); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, callers); err != nil {
		return err
	}
	return w.measure(ctx, r, o.burst, load)
}

// wakes is the measurement of new work orders: those of the first organization, next to
// many of the busy one.
type wakes struct {
	*installation
	busy  *tenant
	mails *mailtest.Server
	email string
}

// measure adds the figures of one organization alone, and of both.
func (w *wakes) measure(ctx context.Context, r *report, burst int, load time.Duration) error {
	if err := w.awaitWorkflowsIdle(ctx); err != nil {
		return err
	}
	if _, err := w.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	const reads = "reads, no workflow starts"
	var alone newWorkOrders
	var rate float64
	var used usage
	err := phase(ctx, "alone", 2*load+2*wakesLimit, func(ctx context.Context) (err error) {
		if alone, err = w.create(ctx, load/2); err != nil {
			return err
		}
		if _, err := w.reads(ctx, load/5); err != nil { // opens connections and makes plans
			return err
		}
		before := w.usage()
		rate, err = w.reads(ctx, load/2)
		used = w.usage().since(before)
		return err
	})
	if err != nil {
		return err
	}
	alone.report(r, "new work order alone")
	r.add(reads, rate, "/s")
	used.report(r, reads, int(rate*load.Seconds()/2))
	return phase(ctx, "burst", 4*load+time.Minute+3*wakesLimit, func(ctx context.Context) error {
		started := time.Now()
		if err := w.busy.createWorkOrders(ctx, burst); err != nil {
			return err
		}
		r.add(fmt.Sprintf("creating %d work orders at once", burst), time.Since(started).Seconds(), "s")
		err := w.starting(ctx, r, "", func() error {
			next, err := w.create(ctx, load)
			next.report(r, "new work order while those start")
			return err
		})
		if err != nil {
			return err
		}
		return w.starting(ctx, r, ", while others read", func() error { return w.reading(ctx, r, reads, load) })
	})
}

// starting adds how many workflows of the burst start while run runs, and what that costs.
func (w *wakes) starting(ctx context.Context, r *report, when string, run func() error) error {
	dirty, err := w.dirty(ctx)
	if err != nil {
		return err
	}
	before, from := w.usage(), time.Now()
	if err := run(); err != nil {
		return err
	}
	left, err := w.dirty(ctx)
	if err != nil {
		return err
	}
	what := "workflows of those started" + when
	r.add(what, perSecond(dirty-left, from, time.Now()), "/s")
	w.usage().since(before).report(r, what, dirty-left)
	r.add("work orders that still wait for their workflow then", float64(left), "")
	return nil
}

// reading adds the figures of reads and of new work orders at the same time.
func (w *wakes) reading(ctx context.Context, r *report, to string, load time.Duration) error {
	var next newWorkOrders
	var rate float64
	group, during := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		rate, err = w.reads(during, load)
		return err
	})
	group.Go(func() (err error) {
		next, err = w.create(during, load)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.compare("reads while those start", rate, "/s", to).Aim = readsShare
	next.report(r, "new work order while those start and others read")
	return nil
}

// reads returns the reads per second of many callers.
func (w *wakes) reads(ctx context.Context, load time.Duration) (float64, error) {
	started := time.Now()
	n, err := w.erp.flood(ctx, callers, readOne, started.Add(load))
	return perSecond(n, started, time.Now()), err
}

// dirty returns how many records their workflows have not loaded.
func (w *wakes) dirty(ctx context.Context) (n int, err error) {
	err = w.pool.QueryRow(ctx, `SELECT count(*) FROM looks_owed`).Scan(&n)
	return n, err
}

// newWorkOrders is how long new work orders took from their response.
type newWorkOrders struct{ workflow, mail waits }

func (n newWorkOrders) report(r *report, what string) {
	for _, part := range []struct {
		name string
		of   waits
	}{{"workflow", n.workflow}, {"mail", n.mail}} {
		r.add(what+": "+part.name+", p50", milliseconds(part.of.percentile(50)), "ms")
		longest := part.of.percentile(100)
		f := r.add(what+": "+part.name+", longest", milliseconds(longest), "ms")
		f.Limit, f.Ratio, f.To = 1, longest.Seconds()/wakesWithin.Seconds(), wakesWithin.String()
	}
}

// create creates a work order of the first organization every wakesEvery for the given
// time, and waits until each has its workflow and its mail.
func (w *wakes) create(ctx context.Context, load time.Duration) (made newWorkOrders, err error) {
	var mu sync.Mutex
	calls := newPacer(1/wakesEvery.Seconds(), load)
	group, ctx := errgroup.WithContext(ctx)
	c, err := dial(ctx, w.erp.address, w.erp.token)
	if err != nil {
		return made, err
	}
	defer c.conn.Close()
	for {
		_, _, more, err := calls.next(ctx)
		if err != nil || !more {
			return made, errors.Join(err, group.Wait())
		}
		seen := len(w.mails.Messages())
		title := rand.Text()
		id, err := w.erp.createTitled(c, title)
		if err != nil {
			return made, errors.Join(err, group.Wait())
		}
		at := time.Now()
		group.Go(func() error {
			workflow, err := w.await(ctx, at, func() (bool, error) { return w.hasWorkflow(ctx, id) })
			if err != nil {
				return err
			}
			mail, err := w.await(ctx, at, func() (bool, error) {
				for _, m := range w.mails.MessagesAfter(seen) {
					seen++
					if m.Recipient == w.email && strings.Contains(m.Subject, title) {
						return true, nil
					}
				}
				return false, nil
			})
			mu.Lock()
			defer mu.Unlock()
			made.workflow, made.mail = append(made.workflow, workflow), append(made.mail, mail)
			return err
		})
	}
}

// await returns how long after the given time the condition holds, at most wakesLimit.
func (w *wakes) await(ctx context.Context, from time.Time, holds func() (bool, error)) (time.Duration, error) {
	err := until(ctx, wakesPoll, func() (bool, error) {
		held, err := holds()
		return held || time.Since(from) > wakesLimit, err
	})
	return time.Since(from), err
}

// hasWorkflow reports whether the work order has a workflow.
func (w *wakes) hasWorkflow(ctx context.Context, id string) (bool, error) {
	_, err := w.temporal.DescribeWorkflowExecution(ctx, workflows.WorkOrderID(id), "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return false, nil
	}
	return err == nil, err
}
