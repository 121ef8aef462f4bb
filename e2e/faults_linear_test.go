package e2e

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearLimit bounds the check of one work order's calls, which takes milliseconds
// unless they are not linearizable.
const linearLimit = 2 * time.Minute

// recordedCall is one call of a client with its result.
type recordedCall struct {
	client int
	// input has no record if it is a creation.
	input  orderCall
	result orderResult
	// sent and returned count from the recorder's start.
	sent, returned time.Duration
}

// recorder collects the calls of all clients with the times of one monotonic clock.
type recorder struct {
	start time.Time
	mu    sync.Mutex
	calls []recordedCall
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

func (r *recorder) now() time.Duration { return time.Since(r.start) }

func (r *recorder) add(c recordedCall) {
	c.returned = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// addRead adds a read of a work order, or that it exists when the calls begin.
func (r *recorder) addRead(client int, kind, record string, sent time.Duration, status int, shown version) {
	r.add(recordedCall{
		client: client, sent: sent, input: orderCall{kind: kind, record: record},
		result: orderResult{status: status, shown: shown},
	})
}

// histories returns the calls by their work order, and creations without effect by
// their key. created are the created work orders by their keys: a response may be lost.
func (r *recorder) histories(created map[string]string) map[string][]porcupine.Operation {
	calls := map[string][]recordedCall{}
	for _, c := range r.calls {
		calls[c.input.key] = append(calls[c.input.key], c)
	}
	histories := map[string][]porcupine.Operation{}
	for key, tries := range calls {
		if key != "" {
			tries = withoutIneffective(tries)
		}
		for _, c := range tries {
			c.input.again = len(tries) > 1
			c.input.record = cmp.Or(c.input.record, created[key], c.result.shown.ID)
			operation := porcupine.Operation{
				ClientId: c.client, Input: c.input, Call: c.sent.Nanoseconds(), Output: c.result, Return: c.returned.Nanoseconds(),
			}
			if c.result.unknown { // its write may still be running
				operation.Return = math.MaxInt64
			}
			subject := cmp.Or(c.input.record, key)
			histories[subject] = append(histories[subject], operation)
		}
	}
	return histories
}

// withoutIneffective removes the tries of a write with an unknown result if another
// try got a response that is not a replay: then they had no effect. The check would
// find that out too, but by trying all their combinations.
func withoutIneffective(tries []recordedCall) []recordedCall {
	responded := func(c recordedCall) bool { return !c.result.unknown && !c.result.replayed }
	if !slices.ContainsFunc(tries, responded) {
		return tries
	}
	return slices.DeleteFunc(slices.Clone(tries), func(c recordedCall) bool { return c.result.unknown })
}

// checkLinearizable checks that the recorded calls of each work order have an order
// that explains all their results and keeps the order of calls that did not overlap.
func (a *audit) checkLinearizable(r *recorder) {
	a.t.Helper()
	started := time.Now()
	histories := r.histories(a.created())
	var calls, unknown, replayed, conditional int
	for _, subject := range slices.Sorted(maps.Keys(histories)) {
		history := histories[subject]
		for _, o := range history {
			calls++
			if o.Output.(orderResult).unknown {
				unknown++
			}
			if o.Output.(orderResult).replayed {
				replayed++
			}
			if o.Input.(orderCall).ifMatch != (version{}) {
				conditional++
			}
		}
		if result := porcupine.CheckOperationsTimeout(orderModel, history, linearLimit); result != porcupine.Ok {
			a.addFault("not linearizable", "%s (%s):\n%s", subject, result, describeHistory(history))
		}
	}
	addFinding(a.t, "linearizable", "%d calls of %d work orders, %d of them replays, %d with If-Match, %d without a known result; checked in %.1f s",
		calls, len(histories), replayed, conditional, unknown, time.Since(started).Seconds())
}

// created returns the created work orders by the markers of their creations.
func (a *audit) created() map[string]string {
	created := map[string]string{}
	for record, history := range a.histories {
		for _, e := range history {
			if e.Action == "work_order.created" {
				created[e.marker] = record
			}
		}
	}
	return created
}

// recordFinalReads adds what the API shows of every work order after all calls, so
// that a lost write is noticed even if no client read the work order again.
func (a *audit) recordFinalReads(r *recorder) {
	a.t.Helper()
	sent := r.now()
	for id, record := range a.shownRecords() {
		body, err := json.Marshal(record)
		if err != nil {
			a.t.Fatal(err)
		}
		r.addRead(-1, "read", id, sent, http.StatusOK, versionOf(body, ""))
	}
}

// describeHistory prints the calls in the order in which they were sent.
func describeHistory(history []porcupine.Operation) string {
	const most = 100
	var b strings.Builder
	sorted := slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for n, o := range sorted {
		if n == most {
			b.WriteString("…\n")
			break
		}
		returned := "never"
		if o.Return != math.MaxInt64 {
			returned = time.Duration(o.Return).String()
		}
		b.WriteString(time.Duration(o.Call).String() + " to " + returned + ": " + orderModel.DescribeOperation(o.Input, o.Output) + "\n")
	}
	return b.String()
}
