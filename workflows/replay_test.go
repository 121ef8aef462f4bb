package workflows_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"millwright/worker"
)

// record has the histories recorded again before they are replayed; see testdata/README.md.
var record = flag.Bool("record", false, "record testdata/*.json again, on the Temporal at TEMPORAL_ADDRESS")

// recording is a history in testdata and what it tells.
type recording struct {
	file string
	// tells are words for what happens, in their order: activities by name, local
	// ones too, signals with a ! before it, timer, stopped for a timer, completed.
	// Others may stand between them.
	tells string
	// play has it happen and returns the workflow's id.
	play func(ctx context.Context, s *stage) (workflowID string, err error)
}

var recordings = []recording{
	{"delivery_delivered_at_the_second_attempt.json", "!poke LoadDelivery AttemptDelivery completed", playDeliveredAtTheSecondAttempt},
	{"delivery_failed_then_redelivered.json", "!poke LoadDelivery AttemptDelivery !redeliver RedeliverDelivery completed", playFailedThenRedelivered},
	{"delivery_poked_stopped_redelivered.json", "!poke LoadDelivery !poke LoadDelivery !stop StopDelivery !redeliver RedeliverDelivery completed", playPokedStoppedRedelivered},
	{"delivery_held_when_its_address_was_off.json", "!poke LoadDelivery AttemptDelivery completed", playHeld},
	{"mailbox_poked_between_rounds.json", "!poke DrainMailbox !poke DrainMailbox completed", playMailboxPokedBetweenRounds},
	{"mailbox_with_more_after_a_round.json", "!poke DrainMailbox DrainMailbox completed", playMailboxWithMore},
	{"sweep.json", "PokeOwed completed", playSweep},
	{"housekeeping.json", "RemoveExpired RemoveExpired completed", playHousekeeping},
	{"work_order_completed.json", "!poke LookAtWorkOrder MailNotices !poke LookAtWorkOrder MailNotices completed", playCompleted},
	{"work_order_target_date_moved.json", "!poke LookAtWorkOrder timer !poke LookAtWorkOrder stopped timer " +
		"RemindOfWorkOrder MailNotices timer RemindOfWorkOrder !poke LookAtWorkOrder completed", playTargetDateMoved},
	{"work_order_review_waits.json", "!poke LookAtWorkOrder !poke LookAtWorkOrder timer RemindOfWorkOrder MailNotices " +
		"!poke LookAtWorkOrder completed", playReviewWaits},
	{"work_order_ends_before_its_mail.json", "!poke LookAtWorkOrder MailNotices !poke LookAtWorkOrder " +
		"LookAtWorkOrder MailNotices completed", playEndsBeforeItsMail},
	{"feedback_resolved.json", "!poke LookAtFeedback MailNotices !poke LookAtFeedback MailNotices completed", playResolved},
}

// What ran under the recorded code must run under today's: a workflow that was
// begun before a release goes on after it.
func TestRecordedHistoriesReplay(t *testing.T) {
	if *record {
		recordAll(t)
	}
	for _, r := range recordings {
		t.Run(strings.TrimSuffix(r.file, ".json"), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", r.file))
			if err != nil {
				t.Fatalf("%v; testdata/README.md says how to record it", err)
			}
			told, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkTells(t, told, r.tells)
			checkAnonymous(t, string(text))
			replayer := sdkworker.NewWorkflowReplayer()
			worker.Register(replayer)
			quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler)) // the error says what a log would
			if err := replayer.ReplayWorkflowHistory(quiet, told); err != nil {
				t.Errorf("it does not replay: %v", err)
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
			t.Errorf("%s is no recording's", file)
		}
	}
}

// checkTells checks that the history shows the words in their order.
func checkTells(t *testing.T, told *history.History, words string) {
	t.Helper()
	left := strings.Fields(words)
	var shown []string
	for _, event := range told.GetEvents() {
		word := wordFor(event)
		if word != "" {
			shown = append(shown, word)
		}
		if len(left) > 0 && word == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Errorf("the history shows %v, want in this order %s", shown, words)
	}
}

// wordFor returns the word that stands for an event, "" for those that only show
// how Temporal works.
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
		return localActivity(event.GetMarkerRecordedEventAttributes())
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return "completed"
	default:
		return ""
	}
}

// machine matches process@host, host:uuid, IP addresses and paths.
var machine = regexp.MustCompile(`\d+@\w|"[^"]+:[0-9a-f]{8}-[0-9a-f]{4}-|\b\d+\.\d+\.\d+\.\d+\b|"/\w`)

// checkAnonymous checks that nothing tells where the history was recorded.
func checkAnonymous(t *testing.T, text string) {
	t.Helper()
	if trace := machine.FindString(text); trace != "" {
		t.Errorf("the history names the machine it was recorded on: %s", trace)
	}
	if host, err := os.Hostname(); err == nil && strings.Contains(text, host) {
		t.Errorf("the history names the host %s", host)
	}
}
