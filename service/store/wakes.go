package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"millwright/models"
)

// WakeTarget names the workflow to wake. A wake carries no data.
type WakeTarget struct {
	Kind TargetKind
	ID   string
	// OrganizationID is whose workflow it is: a Waker is fair to organizations. It is ""
	// if that is unknown.
	OrganizationID string
	// Swept is true if the sweep or a removal found it, so that it may wait for what is woken by writes.
	Swept bool
}

// TargetKind is the kind of a workflow that can be woken.
type TargetKind string

// The kinds of workflows, and when they are woken.
const (
	TargetWebhook   TargetKind = "webhook"    // an address has pending deliveries
	TargetDelivery  TargetKind = "delivery"   // a delivery whose first attempt failed, and that changed
	TargetWorkOrder TargetKind = "work_order" // a work order is new, or its status or target date changed
	TargetFeedback  TargetKind = "feedback"   // feedback is new or resolved
	TargetMail      TargetKind = "mail"       // notices of an organization wait to be mailed: after MailDelay
	TargetLinks     TargetKind = "links"      // sign-in links of an organization wait to be mailed
)

// MailDelay is the time from a notice to the wake that has it mailed. Notices that come before then
// are in the same e-mail.
const MailDelay = 10 * time.Second

// MailTarget returns the target of the kind, TargetMail or TargetLinks, that mails what waits for the
// organization's people.
func MailTarget(kind TargetKind, organizationID string) WakeTarget {
	return WakeTarget{Kind: kind, ID: organizationID, OrganizationID: organizationID}
}

// ForMail reports whether the target is a workflow that sends e-mails.
func (t WakeTarget) ForMail() bool { return t.Kind == TargetMail || t.Kind == TargetLinks }

// NewWakeTarget returns the target for an id of the organization, by the id's prefix.
func NewWakeTarget(organizationID, id string) WakeTarget {
	target := WakeTarget{Kind: TargetWebhook, ID: id, OrganizationID: organizationID}
	prefix, _, _ := strings.Cut(id, "_")
	switch models.IDPrefix(prefix) { //nolint:exhaustive // no others have a workflow
	case models.PrefixWorkOrder:
		target.Kind = TargetWorkOrder
	case models.PrefixFeedback:
		target.Kind = TargetFeedback
	case models.PrefixDelivery:
		target.Kind = TargetDelivery
	}
	return target
}

// Waker wakes workflows after a commit. It neither blocks nor fails: the sweep finds
// the work of wakes that are lost.
type Waker interface {
	Wake(targets ...WakeTarget)
	// WakeFailing has each delivery's workflow begin the retry schedule, and starts it if it is not open. One
	// that it starts belongs to the trace of the call that its delivery comes from.
	WakeFailing(deliveries ...FailingDelivery)
}

// TracingWaker is a Waker that can start workflows in the trace of a context.
type TracingWaker interface {
	WakeIn(ctx context.Context, targets ...WakeTarget)
}

// WakeIn wakes the targets. If the trace of the context is sampled and the waker is a
// TracingWaker, workflows that this starts join the trace.
func WakeIn(ctx context.Context, waker Waker, targets ...WakeTarget) {
	if tracing, can := waker.(TracingWaker); can && trace.SpanContextFromContext(ctx).IsSampled() {
		tracing.WakeIn(ctx, targets...)
		return
	}
	waker.Wake(targets...)
}

type withoutWake struct{}

// WithoutWake returns a context whose writes do not wake the record's workflow: it is the
// caller, and loads the record.
func WithoutWake(ctx context.Context, recordID string) context.Context {
	return context.WithValue(ctx, withoutWake{}, recordID)
}

// FailingDelivery is a delivery that is retried by its workflow, with what that is found by.
type FailingDelivery struct {
	DeliveryID, OrganizationID, IntegrationID, WebhookID, RecordID string
	EventType                                                      models.EventType
	// LastResult is the receiver's status, or the class of the error.
	LastResult string
	// Page is the URL of its page in the console.
	Page string `gorm:"-" db:"-"`
	// StartOnly leaves a workflow that is open alone: it may be paused.
	StartOnly bool `gorm:"-" db:"-"`
	// TraceParent is the attempt's.
	TraceParent string `gorm:"-" db:"-"`
}

// QueueSwept queues a statement whose rows are ids with their organizations.
func QueueSwept(pipeline *pgx.Batch, to *[]WakeTarget, sql string, arguments ...any) {
	pipeline.Queue(sql, arguments...).Query(func(rows pgx.Rows) error {
		var id, organizationID string
		_, err := pgx.ForEachRow(rows, []any{&id, &organizationID}, func() error {
			target := NewWakeTarget(organizationID, id)
			target.Swept = true
			*to = append(*to, target)
			return nil
		})
		return err
	})
}
