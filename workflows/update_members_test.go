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
// send it could use.
func TestUpdatesTakeOnlyTheirDocumentedMembers(t *testing.T) {
	documented := documentedUpdates(t)
	var names []string // of members that an update might know
	for _, updates := range documented {
		for _, members := range updates {
			names = append(names, members...)
		}
	}
	names = append(names, "logged", "url", "kind", "force", "begun_as", "update_id", "actor", "organization", "Reason", "Since", "")
	slices.Sort(names)
	names = slices.Compact(names)

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
	checked := 0
	for workflow, updates := range documented {
		h := runs[workflow].harness
		wrong, second := map[string]*update{}, 0
		send := func(name, input string) *update {
			second++
			return h.update(fmt.Sprintf("%dms", 10*second), name, input)
		}
		for name, members := range updates {
			for _, extra := range names {
				if !slices.Contains(members, extra) {
					wrong[name+" with "+extra] = send(name, inputOf(append(slices.Clone(members), extra)...))
				}
			}
			for i, missing := range members {
				wrong[name+" without "+missing] = send(name, inputOf(slices.Delete(slices.Clone(members), i, i+1)...))
			}
			for _, member := range members {
				twice := strings.TrimSuffix(inputOf(members...), "}") + fmt.Sprintf(`, %q: %q}`, member, documentedValues[member])
				wrong[name+" with two of "+member] = send(name, twice)
			}
		}
		right := map[string]*update{}
		for name, members := range updates {
			second += 1000
			right[name] = send(name, inputOf(members...))
		}
		runs[workflow].run()
		for what, sent := range wrong {
			checked++
			if sent.accepted || sent.rejected == nil || !strings.Contains(sent.rejected.Error(), "type: "+errorInput) {
				t.Errorf("%s: %s was not rejected: %v", workflow, what, sent.rejected)
			}
		}
		for name, sent := range right {
			if sent.rejected != nil {
				t.Errorf("%s: %s with its documented members was rejected: %v", workflow, name, sent.rejected)
			}
		}
	}
	if checked < 150 {
		t.Errorf("only %d inputs were checked", checked)
	}
}
