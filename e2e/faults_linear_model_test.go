package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/anishathalye/porcupine"
)

// shownOrder is what the responses show of a work order and the clients change.
type shownOrder struct {
	ID, Status, Description, Priority, CancelReason string
}

// version is a work order as one response shows it. The tag is "" if it is unknown:
// the response was lost, or is a list.
type version struct {
	shownOrder
	tag string
}

// versionOf reads a work order from a response, the zero version from any other body.
func versionOf(body []byte, tag string) version {
	var order struct {
		ID           string `json:"id"`
		Description  string `json:"description"`
		Priority     string `json:"priority"`
		CancelReason string `json:"cancel_reason"`
		Status       struct {
			Code string `json:"code"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return version{}
	}
	return version{shownOrder{order.ID, order.Status.Code, order.Description, order.Priority, order.CancelReason}, tag}
}

// orderCall is the input of one call about a work order.
type orderCall struct {
	// kind is the kind of the write, or read, or begin: the work order exists already.
	kind   string
	record string
	// key is the idempotency key of a write, whose text contains the marker.
	key, marker string
	// priority is the one that a change sets, "" if it leaves it.
	priority string
	// ifMatch is the version that the client requires, the zero version for any.
	ifMatch version
	// again reports whether the key has several calls; otherwise its response need not
	// be remembered.
	again bool
}

// orderResult is the response of a call. An unknown one was lost or was a 5xx, so
// the write may have happened, may happen later, or never.
type orderResult struct {
	unknown  bool
	status   int
	code     string
	replayed bool
	shown    version
}

func (r orderResult) acknowledged() bool {
	return r.status == http.StatusOK || r.status == http.StatusCreated
}

// orderState is a work order between two calls, and the responses stored with the
// idempotency keys of its writes. The zero state is that before the creation.
type orderState struct {
	version
	// stored is never changed in place: earlier states share it.
	stored map[string]version
}

// orderModel is what the API promises to clients of one work order: calls act one
// after the other, each between its request and its response; a key is used once.
var orderModel = porcupine.Model{
	Init: func() any { return orderState{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(orderState).step(input.(orderCall), output.(orderResult))
	},
	Equal: func(a, b any) bool {
		x, y := a.(orderState), b.(orderState)
		return x.version == y.version && maps.Equal(x.stored, y.stored)
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// step reports whether the call may have this result in this state, and returns the
// state after it.
func (s orderState) step(c orderCall, r orderResult) (bool, orderState) {
	switch c.kind {
	case "begin":
		return s.ID == "", orderState{version: r.shown}
	case "read":
		return s.read(r)
	}
	first, stored := s.stored[c.key]
	next, open := s.apply(c)
	switch {
	case r.unknown && (stored || !open || !s.mayMatch(c.ifMatch)):
		return true, s
	case r.unknown:
		return true, next.store(c)
	case stored:
		// Only the response that ran the write was lost may have an unknown tag.
		same := first.tag == "" || first.tag == r.shown.tag
		return r.replayed && r.acknowledged() && same && first.shownOrder == r.shown.shownOrder, s
	case r.replayed:
		return false, s
	case r.acknowledged():
		next.tag = r.shown.tag
		return open && s.mayMatch(c.ifMatch) && next.version == r.shown && next.tag != s.tag, next.store(c)
	case r.status == http.StatusPreconditionFailed:
		return c.ifMatch != version{} && (s.tag == "" || s.tag != c.ifMatch.tag), s
	}
	return r.code == "rule_violation" && !open, s
}

func (s orderState) read(r orderResult) (bool, orderState) {
	if r.status != http.StatusOK || s.ID == "" || s.shownOrder != r.shown.shownOrder {
		return false, s
	}
	if s.tag == "" {
		s.tag = r.shown.tag
	}
	return r.shown.tag == "" || s.tag == r.shown.tag, s
}

// apply returns the state after the write, with an unknown tag, and reports whether
// the status allows the write.
func (s orderState) apply(c orderCall) (next orderState, open bool) {
	next, next.tag = s, ""
	if c.kind == "create" {
		next.shownOrder = shownOrder{ID: c.record, Status: "open", Description: c.marker, Priority: "none"}
		return next, s.ID == ""
	}
	switch c.kind {
	case "patch":
		next.Description = c.marker
		if c.priority != "" {
			next.Priority = c.priority
		}
	case "answer":
		next.Status = "in_progress"
	case "complete":
		next.Status = "complete"
	case "cancel":
		next.Status, next.CancelReason = "cancelled", c.marker
	}
	return next, s.Status == "open" || s.Status == "in_progress"
}

// mayMatch reports whether the work order may have the version's tag.
func (s orderState) mayMatch(required version) bool {
	if required == (version{}) {
		return true
	}
	if s.tag == "" {
		return s.shownOrder == required.shownOrder
	}
	return s.tag == required.tag
}

// store returns the state with its version stored as the response to the call.
func (s orderState) store(c orderCall) orderState {
	if !c.again {
		return s
	}
	stored := map[string]version{c.key: s.version}
	maps.Copy(stored, s.stored)
	s.stored = stored
	return s
}
