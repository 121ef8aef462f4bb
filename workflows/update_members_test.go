package workflows

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/models"
)

// temporalDoc documents the updates.
const temporalDoc = "../docs/temporal.md"

// documentedUpdates returns the members of each update's input by workflow and update.
func documentedUpdates(t *testing.T) map[string]map[string][]string {
	t.Helper()
	text, err := os.ReadFile(temporalDoc)
	if err != nil {
		t.Fatal(err)
	}
	all, workflow := map[string]map[string][]string{}, ""
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`(\\w+)`)? ?\\| ((?:`\\w+`(?:, )?)+) \\| `(\\{.*?\\})`").FindAllStringSubmatch(string(text), -1) {
		if row[1] != "" {
			workflow = row[1]
		}
		if all[workflow] == nil {
			all[workflow] = map[string][]string{}
		}
		members := []string{}
		for _, member := range strings.Split(strings.Trim(row[3], "{}"), ", ") {
			if name, _, _ := strings.Cut(member, ":"); name != "" {
				members = append(members, strings.Trim(name, `"`))
			}
		}
		for _, update := range regexp.MustCompile(`\w+`).FindAllString(row[2], -1) {
			all[workflow][update] = members
		}
	}
	return all
}

// documentedValues has a valid value of each member.
var documentedValues = map[string]string{
	"reason": "maintenance", "since": "2026-03-01T08:00:00Z", "event_type": "work_order.created",
	"decision": "approve", "comment": "Well done", "person": personID,
}

// inputOf returns the input with the members.
func inputOf(members ...string) string {
	values := map[string]string{}
	for _, name := range members {
		values[name] = documentedValues[name]
	}
	encoded, _ := json.Marshal(values)
	return string(encoded)
}

// An update accepts the members that docs/temporal.md lists and no others, which anyone who may
// send it could use. The sentence of a rejection lists what it accepts.
func TestUpdatesTakeOnlyTheirDocumentedMembers(t *testing.T) {
	documented := documentedUpdates(t)
	address, delivery, workOrder, feedback := newAddressHarness(t, nothingMore), newDeliveryHarness(t), newWorkOrderHarness(t), newFeedbackHarness(t)
	workOrder.write("3h", func() { workOrder.setStatus(models.StatusComplete) })
	feedback.write("3h", func() { feedback.move(string(models.FeedbackResolved)) })
	runs := map[string]struct {
		harness *harness
		run     func()
	}{
		WebhookAddressName: {&address.harness, func() { _ = address.run() }},
		DeliveryName:       {&delivery.harness, delivery.run},
		WorkOrderName:      {&workOrder.harness, workOrder.run},
		FeedbackName:       {&feedback.harness, feedback.run},
	}
	if !slices.Equal(slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(runs))) {
		t.Fatalf("documented are updates of %v", slices.Sorted(maps.Keys(documented)))
	}
	for workflow, updates := range documented {
		h := runs[workflow].harness
		wrong, right := map[string]*updateResult{}, map[string]*updateResult{}
		for name, members := range updates {
			number := len(wrong) + 1
			wrong[name] = h.update(fmt.Sprintf("%dms", 10*number), name, `{"force": "yes"}`)
			right[name] = h.update(fmt.Sprintf("%ds", number), name, inputOf(members...))
		}
		runs[workflow].run()
		for name, members := range updates {
			want := `rejected: There is no member "force"; the input has ` + memberList(members) + "."
			if wrong[name].outcome != want || wrong[name].kind != errorInput {
				t.Errorf("%s: %s with another member: %s, want %s", workflow, name, wrong[name].outcome, want)
			}
			// One that comes after the workflow's end, as after cancel, has no outcome.
			if got := right[name].outcome; strings.HasPrefix(got, "rejected: ") {
				t.Errorf("%s: %s with its documented members was %s", workflow, name, got)
			}
		}
	}
}

// The caller reads what is wrong with the shape of an input.
func TestInputsOfTheWrongShape(t *testing.T) {
	decoder := func(u recordUpdate) func(string) error {
		return func(raw string) error { _, err := u.action(json.RawMessage(raw)); return err }
	}
	review, hold, cancel := decoder(workOrderUpdates[0]), decoder(workOrderUpdates[1]), decoder(workOrderUpdates[3])
	since := func(raw string) error { _, err := sinceMember(json.RawMessage(raw)); return err }
	orNever := func(raw string) error { _, err := optionalSince(json.RawMessage(raw)); return err }
	reason := func(raw string) error { _, err := reasonMember(json.RawMessage(raw)); return err }
	event := func(raw string) error { _, err := eventTypeMember(json.RawMessage(raw)); return err }
	none := func(raw string) error { _, err := noMembers(json.RawMessage(raw)); return err }
	const (
		oneObject     = "The input is one JSON object with the members person."
		reviewMembers = "; the input has the members decision, comment, person."
		whichPerson   = `The person is the identity id of a person, which begins with "idn_".`
		whichTime     = `The member "since" is a time like 2026-03-01T08:00:00Z.`
	)
	for _, tt := range []struct {
		decode      func(raw string) error
		input, want string
	}{
		{hold, "", oneObject},
		{hold, `"idn_1"`, oneObject},
		{hold, `["idn_1"]`, oneObject},
		{hold, `null`, oneObject},
		{hold, asPerson + "{}", "The input is not one JSON object."},
		{none, `[]`, "The input is one JSON object with no members."},
		{none, `5`, "The input is one JSON object with no members."},
		{review, `{}`, `The member "decision" is missing` + reviewMembers},
		{review, `{"aprove": true}`, `There is no member "aprove"` + reviewMembers},
		{hold, `{"person": 7}`, `The member "person" must be a string.`},
		{cancel, `{"reason": null}`, `The member "reason" must be a string.`},
		{cancel, `{"reason": {}}`, `The member "reason" must be a string.`},
		{reason, `{"reason": 5}`, `The member "reason" must be a string.`},
		{hold, `{"person": "x", "person": "y"}`, `The member "person" is there twice.`},
		{review, `{"decision": "maybe", "comment": "", "person": "` + personID + `"}`, `The decision is "approve" or "send_back".`},
		{hold, `{"person": "ann@example.com"}`, whichPerson},
		{hold, `{"person": "` + recordID + `"}`, whichPerson},
		{orNever, `{"since": null}`, `The member "since" must be a string.`},
		{orNever, `{"since": "yesterday"}`, whichTime},
		{orNever, `{"since": "2026-03-01T08:00:00+24:00"}`, whichTime},
		{since, `{"since": ""}`, whichTime},
		{since, `{"since": "2026-03-01"}`, whichTime},
		{since, `{"since": "2026-03-01T08:00:00+23:60"}`, whichTime},
		{event, `{"event_type": "eaten"}`, `There is no event type "eaten".`},
		{event, `{"event_type": ""}`, `There is no event type "".`},
		{event, `{"event_type": ["ping"]}`, `The member "event_type" must be a string.`},
	} {
		if err := tt.decode(tt.input); err == nil || !strings.HasPrefix(err.Error(), tt.want+" (type: "+errorInput) {
			t.Errorf("%s: %v, want %s", tt.input, err, tt.want)
		}
	}
}
