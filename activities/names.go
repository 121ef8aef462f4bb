package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// Activity names are the methods' names. Workflow histories store them, so after a release
// a name never changes.
const (
	NameDispatchPending   = "DispatchPending"
	NameAttempt           = "Attempt"
	NameLoadDelivery      = "LoadDelivery"
	NameRedeliverDelivery = "RedeliverDelivery"
	NameStopDelivery      = "StopDelivery"
	NameLoadAddress       = "LoadAddress"
	NameTurnOffAddress    = "TurnOffIfUnsuccessful"
	NameWarnOfFailing     = "WarnOfFailing"
	NameDisableAddress    = "DisableAddress"
	NameEnableAddress     = "EnableAddress"
	NameRedeliverSince    = "RedeliverSince"
	NameTestAddress       = "TestAddress"
	NameSendExample       = "SendExample"
	NameLoadWorkOrder     = "LoadWorkOrder"
	NameRemindWorkOrder   = "RemindWorkOrder"
	NameLoadFeedback      = "LoadFeedback"
	NameReviewWorkOrder   = "ReviewWorkOrder"
	NameHoldWorkOrder     = "HoldWorkOrder"
	NameResumeWorkOrder   = "ResumeWorkOrder"
	NameCancelWorkOrder   = "CancelWorkOrder"
	NameResolveFeedback   = "ResolveFeedback"
	NameSendMail          = "SendMail"
	NameSweepForAWhile    = "SweepForAWhile"
	NameWakeMissing       = "WakeMissing"
	NameHousekeep         = "HousekeepForAWhile"
)

// Register registers DispatchPending.
func (d *Dispatcher) Register(r worker.ActivityRegistry) {
	register(r, NameDispatchPending, d.DispatchPending)
}

// RegisterAttempt registers Attempt, which has its own task queue.
func (a *Deliveries) RegisterAttempt(r worker.ActivityRegistry) { register(r, NameAttempt, a.Attempt) }

// Register registers the other activities of the Delivery workflow.
func (a *Deliveries) Register(r worker.ActivityRegistry) {
	register(r, NameLoadDelivery, a.LoadDelivery)
	register(r, NameRedeliverDelivery, a.RedeliverDelivery)
	register(r, NameStopDelivery, a.StopDelivery)
}

// Register registers the activities of the WebhookAddress workflow.
func (a *Addresses) Register(r worker.ActivityRegistry) {
	register(r, NameLoadAddress, a.LoadAddress)
	register(r, NameTurnOffAddress, a.TurnOffIfUnsuccessful)
	register(r, NameWarnOfFailing, a.WarnOfFailing)
	register(r, NameDisableAddress, a.DisableAddress)
	register(r, NameEnableAddress, a.EnableAddress)
	register(r, NameRedeliverSince, a.RedeliverSince)
	register(r, NameTestAddress, a.TestAddress)
	register(r, NameSendExample, a.SendExample)
}

// Register registers the activities of the WorkOrder and Feedback workflows.
func (r *Records) Register(registry worker.ActivityRegistry) {
	register(registry, NameLoadWorkOrder, r.LoadWorkOrder)
	register(registry, NameRemindWorkOrder, r.RemindWorkOrder)
	register(registry, NameLoadFeedback, r.LoadFeedback)
	register(registry, NameReviewWorkOrder, r.ReviewWorkOrder)
	register(registry, NameHoldWorkOrder, r.HoldWorkOrder)
	register(registry, NameResumeWorkOrder, r.ResumeWorkOrder)
	register(registry, NameCancelWorkOrder, r.CancelWorkOrder)
	register(registry, NameResolveFeedback, r.ResolveFeedback)
}

// Register registers SendMail.
func (m *Mails) Register(r worker.ActivityRegistry) { register(r, NameSendMail, m.SendMail) }

// Register registers the activities of the Sweep workflow.
func (s *Sweeper) Register(r worker.ActivityRegistry) {
	register(r, NameSweepForAWhile, s.SweepForAWhile)
	register(r, NameWakeMissing, s.WakeMissing)
}

// Register registers the activities of the Housekeeping workflow.
func (h *Housekeeper) Register(r worker.ActivityRegistry) {
	register(r, NameHousekeep, h.HousekeepForAWhile)
}

func register(r worker.ActivityRegistry, name string, method any) {
	r.RegisterActivityWithOptions(method, activity.RegisterOptions{Name: name})
}
