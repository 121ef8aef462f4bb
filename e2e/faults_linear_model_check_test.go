package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The versions that the hand-made histories show.
var (
	created = version{shownOrder{"wo_1", "open", "created", "none", ""}, "t1"}
	first   = version{shownOrder{"wo_1", "open", "first", "none", ""}, "t2"}
	second  = version{shownOrder{"wo_1", "open", "second", "none", ""}, "t3"}
	over    = version{shownOrder{"wo_1", "cancelled", "created", "none", "stop"}, "t2"}
)

// The calls of the hand-made histories; at places them in time.
func creates(r orderResult) recordedCall {
	return recordedCall{input: orderCall{kind: "create", key: "created", marker: "created"}, result: r}
}

func patches(marker string, r orderResult) recordedCall {
	return recordedCall{input: orderCall{kind: "patch", record: "wo_1", key: marker, marker: marker}, result: r}
}

func patchesIf(seen version, marker string, r orderResult) recordedCall {
	c := patches(marker, r)
	c.input.ifMatch = seen
	return c
}

func cancels(r orderResult) recordedCall {
	c := patches("stop", r)
	c.input.kind = "cancel"
	return c
}

func reads(shown version) recordedCall {
	return recordedCall{input: orderCall{kind: "read", record: "wo_1"}, result: ok(shown)}
}

func ok(shown version) orderResult { return orderResult{status: http.StatusOK, shown: shown} }

func replays(shown version) orderResult {
	return orderResult{status: http.StatusOK, shown: shown, replayed: true}
}

var (
	lost     = orderResult{unknown: true}
	outdated = orderResult{status: http.StatusPreconditionFailed, code: "precondition_failed"}
	closed   = orderResult{status: http.StatusUnprocessableEntity, code: "rule_violation"}
)

func at(sent, returned time.Duration, c recordedCall) recordedCall {
	c.sent, c.returned = sent, returned
	return c
}

// The storm has very many histories that the model must accept.
func TestLinearizabilityModel(t *testing.T) {
	t.Parallel()
	other := second
	other.ID = "wo_2"
	for name, test := range map[string]struct {
		calls []recordedCall
		want  bool
	}{
		"a retry replays the write of the lost response": {want: true, calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", lost)), at(5, 6, patches("second", ok(second))), at(7, 8, patches("first", replays(first))), at(9, 10, reads(second)),
		}},
		"conditions that hold and do not hold": {want: true, calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patchesIf(created, "first", ok(first))), at(5, 6, patchesIf(created, "second", outdated)), at(7, 8, reads(first)),
		}},

		"an acknowledged change is lost": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", ok(first))), at(5, 6, reads(created)),
		}},
		"a read shows the ETag of no change": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", ok(first))), at(5, 6, reads(version{first.shownOrder, "t9"})),
		}},
		"a change acts before it is sent": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, reads(first)), at(5, 6, patches("first", ok(first))),
		}},
		"a retry does the write again": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", lost)), at(5, 6, reads(first)), at(7, 8, patches("first", ok(first))),
		}},
		"a retried creation makes another work order": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, creates(ok(other))),
		}},
		"a replay without a write": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", replays(first))),
		}},
		"a replay of another response": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", ok(first))), at(5, 6, patches("first", replays(second))),
		}},
		"a rejected change is done": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patchesIf(created, "first", outdated)), at(5, 6, reads(first)),
		}},
		"two conditional changes of one version": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 6, patchesIf(created, "first", ok(first))), at(4, 5, patchesIf(created, "second", ok(second))),
		}},
		"a change of a cancelled work order": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, cancels(ok(over))), at(5, 6, patches("first", ok(first))),
		}},
		"an open work order rejects a change": {calls: []recordedCall{
			at(1, 2, creates(ok(created))), at(3, 4, patches("first", closed)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			histories := (&recorder{calls: test.calls}).histories(map[string]string{"created": "wo_1"})
			if len(histories) != 1 {
				t.Fatalf("the calls are of %d work orders, want one", len(histories))
			}
			for _, history := range histories {
				if got := porcupine.CheckOperations(orderModel, history); got != test.want {
					t.Errorf("linearizable is %t, want %t:\n%s", got, test.want, describeHistory(history))
				}
			}
		})
	}
}
