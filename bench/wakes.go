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
	// workflowWithin and mailWithin are the aims for a new work order's workflow and mail, which
	// leaves after ten seconds. wakesLimit limits the wait for either.
	workflowWithin = 2 * time.Second
	mailWithin     = 12 * time.Second
	wakesLimit     = 20 * time.Second
	wakesPoll      = 10 * time.Millisecond
	// readsShare is the share of the quiet rate that reads are to keep.
	readsShare = 0.5
)

// benchWakes measures how soon the new work orders of one organization have their
// workflows, and its people their mail, after another has created many at once, and how
// many reads are left in that time.
func benchWakes(b *bench) {
	in := b.install("wakes")
	subscription := changeSubscription(1)
	w := wakes{installation: in, mails: must(mailtest.Start(mailtest.Options{})), email: subscription.email()}
	defer w.mails.Close()
	in.settings["SMTP_URL"], in.settings["MAIL_FROM"] = w.mails.URL(), "Millwright <no-reply@millwright.example.com>"
	in.startWith(subscription, callers)
	in.startWorker(nil)
	subscription.key = "burst"
	busy := in.tenantOf(subscription, 1)
	in.awaitWorkflowsIdle()
	in.exec(`VACUUM ANALYZE`)

	const reads = "reads, no workflow starts"
	in.begin("alone")
	must(w.create(in.ctx, in.load/2)).report(in.report, "new work order alone")
	in.flood(in.erp, callers, readOne, in.load/5) // opens connections and makes plans
	in.addSeries(reads, series{in.flood(in.erp, callers, readOne, in.load/2)})
	in.begin("burst")
	started := time.Now()
	check(busy.createWorkOrders(in.ctx, in.options.burst))
	in.add(fmt.Sprintf("creating %d work orders at once", in.options.burst), time.Since(started).Seconds(), "s")
	w.starting("", func() { must(w.create(in.ctx, in.load)).report(in.report, "new work order while those start") })
	w.starting(", while others read", func() {
		var next newWorkOrders
		var group errgroup.Group
		group.Go(func() (err error) {
			next, err = w.create(in.ctx, in.load)
			return err
		})
		during := in.flood(in.erp, callers, readOne, in.load)
		check(group.Wait())
		in.compare("reads while those start", during.rate(), "/s", reads).Aim = readsShare
		next.report(in.report, "new work order while those start and others read")
	})
}

// wakes is the measurement of new work orders of the first organization, next to many of
// another one.
type wakes struct {
	*installation
	mails *mailtest.Server
	email string
}

// starting adds how many workflows of the burst start while run runs, and their cost.
func (w *wakes) starting(when string, run func()) {
	dirty, left := w.dirtyRecords(), 0
	m := w.measure(func() int {
		run()
		left = w.dirtyRecords()
		return dirty - left
	})
	what := "workflows of those started" + when
	w.add(what, m.rate(), "/s")
	m.cpu(w.report, what)
	w.add("work orders that still wait for their workflow then", float64(left), "")
}

// newWorkOrders is the time that new work orders took from their response.
type newWorkOrders struct{ workflow, mail waits }

func (n newWorkOrders) report(r *report, what string) {
	for _, part := range []struct {
		name   string
		of     waits
		within time.Duration
	}{{"workflow", n.workflow, workflowWithin}, {"mail", n.mail, mailWithin}} {
		r.add(what+": "+part.name+", p50", milliseconds(part.of.percentile(50)), "ms")
		longest := part.of.percentile(100)
		f := r.add(what+": "+part.name+", longest", milliseconds(longest), "ms")
		f.Limit, f.Ratio, f.To = 1, longest.Seconds()/part.within.Seconds(), part.within.String()
	}
}

// create creates a work order of the first organization every wakesEvery for the given
// time, and waits until each has its workflow and its mail.
func (w *wakes) create(ctx context.Context, load time.Duration) (made newWorkOrders, err error) {
	c, err := dial(ctx, w.erp.Address, w.erp.Token)
	if err != nil {
		return made, err
	}
	defer c.conn.Close()
	var mu sync.Mutex
	calls := newPacer(1/wakesEvery.Seconds(), load)
	group, ctx := errgroup.WithContext(ctx)
	for {
		_, more, err := calls.next(ctx)
		if err != nil || !more {
			return made, errors.Join(err, group.Wait())
		}
		seen, title := len(w.mails.Messages()), rand.Text()
		id, err := w.erp.create(c, title)
		if err != nil {
			return made, errors.Join(err, group.Wait())
		}
		at := time.Now()
		group.Go(func() error {
			workflow, noWorkflow := w.within(ctx, at, func() (bool, error) {
				_, err := w.temporal.DescribeWorkflowExecution(ctx, workflows.WorkOrderID(id), "")
				if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
					return false, nil
				}
				return err == nil, err
			})
			mail, noMail := w.within(ctx, at, func() (bool, error) {
				for _, m := range w.mails.Messages()[seen:] {
					seen++
					if m.Recipient == w.email && strings.Contains(m.Text, title) {
						return true, nil
					}
				}
				return false, nil
			})
			mu.Lock()
			defer mu.Unlock()
			made.workflow, made.mail = append(made.workflow, workflow), append(made.mail, mail)
			return errors.Join(noWorkflow, noMail)
		})
	}
}

// within returns how long after the given time the condition holds, at most wakesLimit.
func (w *wakes) within(ctx context.Context, from time.Time, holds func() (bool, error)) (time.Duration, error) {
	err := until(ctx, wakesPoll, func() (bool, error) {
		held, err := holds()
		return held || time.Since(from) > wakesLimit, err
	})
	return time.Since(from), err
}
