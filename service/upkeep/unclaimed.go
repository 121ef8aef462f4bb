package upkeep

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/effects"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// sweepLimit bounds one sweep; the next finds the rest. More dirty records are taken, since
// all of them may be of one organization: the Waker is fair to the others.
const (
	sweepLimit      = 1000
	sweepDirtyLimit = 10_000
)

// dirtyGrace is the grace of dirty records. It is longer because a burst of new
// records takes that long to wake its workflows: by default as long as a Waker keeps wakes.
func dirtyGrace(grace time.Duration) time.Duration { return 6 * grace }

// sweptQueries return the ids of the workflows to wake because nothing else does, with
// their organizations.
var sweptQueries = struct{ addresses, dirty, mails string }{
	addresses: `
		SELECT h.id, h.organization_id FROM webhooks h
		WHERE (EXISTS (SELECT FROM open_deliveries d
				WHERE d.webhook_id = h.id AND d.status = 'pending' AND d.queued_at >= h.held_before AND d.queued_at < $1)
				AND NOT EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = h.id AND y.waits_until > $1)
				OR EXISTS (SELECT FROM redeliveries r WHERE r.webhook_id = h.id))
			AND ` + webhooks.Sends("h") + `
			AND NOT EXISTS (SELECT FROM webhook_leases m WHERE m.webhook_id = h.id AND m.leased_until > $2)
		LIMIT $3`,
	dirty: `
		SELECT l.record_id, ` + effects.OrganizationOfDirty + `
		FROM (SELECT record_id, since FROM dirty_records WHERE since < $1 ORDER BY since LIMIT $2) l ORDER BY l.since`,
	mails: `
		SELECT o.id, o.id FROM organizations o
		WHERE EXISTS (SELECT FROM notices WHERE organization_id = o.id AND mail = 'waiting' AND next_mail_at < $1 AND created_at < $1)
			OR EXISTS (SELECT FROM sign_in_links WHERE organization_id = o.id AND sealed IS NOT NULL AND next_mail_at < $1 AND created_at < $1 AND expires_at > $1)
		LIMIT $2`,
}

// Unclaimed returns the workflows to wake because nothing else does: addresses
// without a lease whose deliveries have been pending for longer than grace, or
// whose redelivery is unfinished, dirty records, and organizations with mail that is due. Waking one
// unnecessarily is harmless. Errors: unavailable.
func (s *Upkeep) Unclaimed(ctx context.Context, grace time.Duration) (unclaimed []store.WakeTarget, err error) {
	now := s.CurrentTime()
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	store.QueueSwept(pipeline, &unclaimed, sweptQueries.addresses, now.Add(-grace), now, sweepLimit)
	store.QueueSwept(pipeline, &unclaimed, sweptQueries.dirty, now.Add(-dirtyGrace(grace)), sweepDirtyLimit)
	var mails []store.WakeTarget
	if s.Mails {
		store.QueueSwept(pipeline, &mails, sweptQueries.mails, now.Add(-grace), sweepLimit)
	}
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	for _, mail := range mails {
		mail.Kind = store.TargetMail
		unclaimed = append(unclaimed, mail)
	}
	return unclaimed, err
}
