package activities

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"millwright/service/records"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// registry records the method that is registered under each name.
type registry struct {
	worker.ActivityRegistry
	methods map[string]string
}

func (r *registry) RegisterActivityWithOptions(method any, options activity.RegisterOptions) {
	name := runtime.FuncForPC(reflect.ValueOf(method).Pointer()).Name()
	r.methods[options.Name] = strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "-fm")
}

// Histories store these names.
func TestActivitiesAreRegisteredUnderTheirNames(t *testing.T) {
	r := &registry{methods: map[string]string{}}
	(&Dispatcher{}).Register(r)
	(&Deliveries{}).Register(r)
	(&Deliveries{}).RegisterAttempt(r)
	(&Addresses{}).Register(r)
	(&Records{}).Register(r)
	(&Mails{}).Register(r)
	(&Sweeper{}).Register(r)
	(&Housekeeper{}).Register(r)
	var names []string
	for name, method := range r.methods {
		if name != method {
			t.Errorf("%s is registered as %s", method, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	const want = "Attempt CancelWorkOrder DisableAddress DispatchPending EnableAddress HoldWorkOrder HousekeepForAWhile LoadAddress LoadDelivery " +
		"LoadFeedback LoadWorkOrder RedeliverDelivery RedeliverSince RemindWorkOrder ResolveFeedback ResumeWorkOrder ReviewWorkOrder " +
		"SendExample SendMail StopDelivery SweepForAWhile TestAddress TurnOffIfUnsuccessful WakeMissing WarnOfFailing"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("registered are %s, want %s", got, want)
	}
}

// Histories store these results.
func TestStoredResultsKeepTheirFields(t *testing.T) {
	const time = `"0001-01-01T00:00:00.000Z"`
	for want, result := range map[string]any{
		`{"Delivered":0,"Failed":0,"More":false}`: DispatchResult{},
		`{"Sent":0,"Kept":0,"PutOff":0,"Waiting":0,"Oldest":null,"NextAt":null,"ServerFailed":false,"Reason":""}`: MailResult{},
		`{"Applied":false,"State":{"ID":"","OrganizationID":"","Status":"","TargetDate":null,"TargetSetAt":null,` +
			`"InReviewSince":null,"Required":0,"Answered":0,"Review":{"Reminder":0,"Escalation":0},"LoadedAt":` + time + `}}`: ReminderResult{},
		`{"ID":"","OrganizationID":"","Status":""}`: records.FeedbackState{},
		`{"ID":"","OrganizationID":"","Status":"","Transitions":[{"At":` + time + `,"From":"","To":"","By":""}]}`: records.FeedbackState{
			Transitions: []records.Transition{{}},
		},
		`{"id":"","status":"","changed_at":` + time + `}`: RecordActionResult{},
		`{"DeliveryID":"","WebhookID":"","IntegrationID":"","OrganizationID":"","RecordID":"","EventID":"","EventType":"",` +
			`"Status":"","Attempts":0,"AttemptsBefore":0,"NextAttemptAt":null,"Workflow":false,"Made":null,"KeptUntil":` + time +
			`,"LoadedAt":` + time + `}`: webhooks.DeliveryState{},
		`{"WebhookID":"","OrganizationID":"","IntegrationID":"","Enabled":false,"OffReason":null,"OffAt":null,"FailingSince":null,"WarnedAt":null,` +
			`"LastSuccessAt":null,"LastAt":null,"LastStatus":null,"LastError":null,"ShutOffDue":false,"Due":false,"WaitsUntil":null,"NextRetryAt":null,` +
			`"Pending":0,"Retrying":0,"Unplaced":0,"Held":0,"Failed":0,"LoadedAt":` + time + `}`: webhooks.AddressState{},
		`{"event_id":"","latency_ms":0}`: TestResult{},
		`{"RevokedTokens":0,"RateCounters":0,"CallCounts":0,"Leases":0,"Watermarks":0,"Deliveries":0,"Partitions":0,"Repositioned":0,"More":false}`: upkeep.RemovalResult{},
	} {
		got, err := json.Marshal(result)
		if err != nil || string(got) != want {
			t.Errorf("%T is stored as\n%s, %v, want\n%s", result, got, err, want)
		}
	}
}
