package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// Activity names. Workflow histories store them, so a name never changes, even if
// the method it names is renamed: workflows execute activities by these constants.
const (
	NameDispatchPending   = "DrainMailbox"
	NameLoadDelivery      = "LoadDelivery"
	NameAttemptDelivery   = "AttemptDelivery" // of runs of the previous release
	NameCheckDelivery     = "CheckDelivery"
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
	NameLoadWorkOrder     = "LookAtWorkOrder"
	NameRemindWorkOrder   = "RemindOfWorkOrder"
	NameLoadFeedback      = "LookAtFeedback"
	NameReviewWorkOrder   = "ReviewWorkOrder"
	NameHoldWorkOrder     = "HoldWorkOrder"
	NameResumeWorkOrder   = "ResumeWorkOrder"
	NameCancelWorkOrder   = "CancelWorkOrder"
	NameResolveFeedback   = "ResolveFeedback"
	NameMailNotices       = "MailNotices"
	NameWakeUnclaimed     = "PokeOwed" // of runs of the previous release
	NameSweepForAWhile    = "SweepForAWhile"
	NameWakeMissing       = "WakeMissing"
	NameRemoveExpired     = "RemoveExpired" // of runs of the previous release
	NameHousekeep         = "HousekeepForAWhile"
)

// Register registers DispatchPending.
func (d *Dispatcher) Register(r worker.ActivityRegistry) {
	register(r, NameDispatchPending, d.DispatchPending)
}

// Register registers the activities of the Delivery workflow.
func (a *Deliveries) Register(r worker.ActivityRegistry) {
	register(r, NameLoadDelivery, a.LoadDelivery)
	register(r, NameAttemptDelivery, a.CheckDelivery)
	register(r, NameCheckDelivery, a.CheckDelivery)
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

// Register registers MailNotices.
func (n *Notices) Register(r worker.ActivityRegistry) { register(r, NameMailNotices, n.MailNotices) }

// Register registers WakeUnclaimed.
func (s *Sweeper) Register(r worker.ActivityRegistry) {
	register(r, NameWakeUnclaimed, s.WakeUnclaimed)
	register(r, NameSweepForAWhile, s.SweepForAWhile)
	register(r, NameWakeMissing, s.WakeMissing)
}

// Register registers the activities of the Housekeeping workflow.
func (h *Housekeeper) Register(r worker.ActivityRegistry) {
	register(r, NameHousekeep, h.HousekeepForAWhile)
	register(r, NameRemoveExpired, h.RemoveExpired)
}

func register(r worker.ActivityRegistry, name string, method any) {
	r.RegisterActivityWithOptions(method, activity.RegisterOptions{Name: name})
}
