package workflows_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"millwright/telemetry"
	"millwright/worker"
)

// recording is a history in testdata.
type recording struct {
	file string
	// shows lists what happens in order: activities by name (local ones too), signals
	// after a "!", accepted updates after a "?", done (an update), timer (started),
	// stopped (a timer), transitions as →status, cancel (requested), continued,
	// completed. Other events may happen in between.
	shows string
}

var recordings = []recording{
	{"sweep.json", "WakeMissing SweepForAWhile completed"},
	{"delivery_retried.json", "!wake Attempt completed"},
	{"delivery_operated.json", "!wake Attempt ?stop StopDelivery done Attempt timer ?redeliver stopped RedeliverDelivery Attempt done Attempt completed"},
	{"delivery_cancelled.json", "!wake Attempt cancel StopDelivery continued"},
	{"address_deleted.json", "!wake LoadAddress DispatchPending LoadAddress !wake LoadAddress completed"},
	{"address_operated.json", "!wake LoadAddress DisableAddress done LoadAddress EnableAddress done DispatchPending completed"},
	{"address_tested.json", "!wake LoadAddress ?test TestAddress done ?trigger SendExample done completed"},
	{"address_cancelled.json", "!wake LoadAddress DisableAddress LoadAddress continued"},
	{"address_turned_off.json", "!wake LoadAddress DispatchPending LoadAddress TurnOffIfUnsuccessful LoadAddress completed"},
	{"mail.json", "!wake SendMail timer SendMail timer !wake stopped SendMail timer SendMail completed"},
	{"housekeeping.json", "HousekeepForAWhile completed"},
	{"work_order_completed.json", "!wake LoadWorkOrder →open !wake LoadWorkOrder →complete completed"},
	{"work_order_target_date_moved.json", "!wake LoadWorkOrder →open timer !wake LoadWorkOrder stopped timer " +
		"RemindWorkOrder timer RemindWorkOrder !wake LoadWorkOrder →cancelled completed"},
	{"work_order_review_escalated.json", "!wake LoadWorkOrder !wake LoadWorkOrder →sent_to_inspection timer RemindWorkOrder " +
		"timer RemindWorkOrder !wake LoadWorkOrder →complete completed"},
	{"work_order_updated.json", "!wake LoadWorkOrder ?hold HoldWorkOrder →on_hold done ?review ReviewWorkOrder done " +
		"?resume ResumeWorkOrder →in_progress done ?cancel CancelWorkOrder →cancelled done timer completed"},
	{"work_order_cancel_requested.json", "!wake LoadWorkOrder cancel !wake LoadWorkOrder →in_progress !wake LoadWorkOrder →complete completed"},
	{"work_order_continues_as_new.json", "!wake LoadWorkOrder →open !wake LoadWorkOrder →in_progress !wake LoadWorkOrder continued"},
	{"work_order_continued_as_new.json", "LoadWorkOrder →complete completed"},
	{"feedback_resolved.json", "!wake LoadFeedback →open !wake LoadFeedback →resolved completed"},
	{"feedback_resolved_by_update.json", "!wake LoadFeedback →open ?resolve ResolveFeedback →resolved done timer completed"},
}

// A workflow started before a release must continue after it: today's code replays
// recorded histories, with and without tracing.
func TestRecordedHistoriesReplay(t *testing.T) {
	if *record != "" {
		recordHistory(t, *record, filepath.Join("testdata", *recordTo))
	}
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Process{Service: "test"}, tracetest.NewInMemoryExporter())
	if err != nil {
		t.Fatal(err)
	}
	traced, err := tracing.Interceptors()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordings {
		t.Run(strings.TrimSuffix(r.file, ".json"), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", r.file))
			if err != nil {
				t.Fatalf("%v; testdata/README.md has the command that records it", err)
			}
			recorded, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkShows(t, recorded, r.shows)
			checkAnonymous(t, string(text))
			checkSummaries(t, recorded)
			for _, interceptors := range [][]interceptor.WorkerInterceptor{nil, {traced[0].(interceptor.WorkerInterceptor)}} {
				replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Interceptors: interceptors})
				if err != nil {
					t.Fatal(err)
				}
				worker.Register(replayer)
				quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler)) // the error says the same
				if err := replayer.ReplayWorkflowHistory(quiet, recorded); err != nil {
					t.Errorf("with %d interceptors it does not replay: %v", len(interceptors), err)
				}
			}
		})
	}
}

func TestEveryHistoryInTestdataIsReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range recordings {
		known[r.file] = true
	}
	for _, file := range files {
		if !known[filepath.Base(file)] {
			t.Errorf("no recording has the file %s", file)
		}
	}
}

// checkShows checks that the history shows the words in order.
func checkShows(t *testing.T, recorded *history.History, words string) {
	t.Helper()
	left := strings.Fields(words)
	var shown []string
	for _, event := range recorded.GetEvents() {
		word := wordFor(event)
		if word != "" {
			shown = append(shown, word)
		}
		if len(left) > 0 && word == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Errorf("the history shows %v, want in order %s", shown, words)
	}
}

// wordFor returns the word for an event, "" for Temporal's internal ones.
func wordFor(event *history.HistoryEvent) string {
	switch event.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		return "!" + event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
	case enums.EVENT_TYPE_TIMER_STARTED:
		return "timer"
	case enums.EVENT_TYPE_TIMER_CANCELED:
		return "stopped"
	case enums.EVENT_TYPE_MARKER_RECORDED:
		if name := localActivity(event.GetMarkerRecordedEventAttributes()); name != "" {
			return name
		}
		return transition(event)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		return "?" + event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName()
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return "done"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return "cancel"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return "continued"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return "completed"
	default:
		return ""
	}
}

// transition returns "→status" for the marker of a transition, "" for other markers.
func transition(event *history.HistoryEvent) string {
	var summary string
	if converter.GetDefaultDataConverter().FromPayload(event.GetUserMetadata().GetSummary(), &summary) != nil {
		return ""
	}
	_, to, _ := strings.Cut(summary, " → ")
	status, _, _ := strings.Cut(to, ",")
	return "→" + status
}

// localActivity returns the name of the local activity whose result the marker
// holds, "" for other markers.
func localActivity(marker *history.MarkerRecordedEventAttributes) string {
	var about struct{ ActivityType string }
	if marker.GetMarkerName() != "LocalActivity" ||
		converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["data"], &about) != nil {
		return ""
	}
	return about.ActivityType
}

// checkSummaries checks that operators read what each timer, activity and marker is for.
func checkSummaries(t *testing.T, recorded *history.History) {
	t.Helper()
	for _, event := range recorded.GetEvents() {
		switch event.GetEventType() { //nolint:exhaustive // no others have a summary
		case enums.EVENT_TYPE_TIMER_STARTED, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_MARKER_RECORDED:
			if len(event.GetUserMetadata().GetSummary().GetData()) == 0 {
				t.Errorf("the event %d, %s, has no summary", event.GetEventId(), event.GetEventType())
			}
		}
	}
}

// machine matches process@host, host:uuid, IP addresses and paths.
var machine = regexp.MustCompile(`\d+@\w|"[^"]+:[0-9a-f]{8}-[0-9a-f]{4}-|\b\d+\.\d+\.\d+\.\d+\b|"/\w`)

// checkAnonymous checks that the history does not name the machine it was recorded on.
func checkAnonymous(t *testing.T, text string) {
	t.Helper()
	if trace := machine.FindString(text); trace != "" {
		t.Errorf("the history names the machine it was recorded on: %s", trace)
	}
	if host, err := os.Hostname(); err == nil && strings.Contains(text, host) {
		t.Errorf("the history names the host %s", host)
	}
}
