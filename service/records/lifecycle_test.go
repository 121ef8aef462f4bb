package records_test

import (
	"os"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
)

// operators are those who may run each operation on a work order in a status (WorkOrderIn), with polar as a worker for a return.
var operators = map[models.Operation]string{
	models.OperationUpdate: "erp", models.OperationAssign: "erp", models.OperationAnswer: "erp", models.OperationComplete: "erp",
	models.OperationCompleteToReview: "erp", models.OperationCancel: "erp", models.OperationApprove: "cat", models.OperationSendBack: "cat",
	models.OperationHold: "ann", models.OperationResume: "ann", models.OperationReturn: "pia",
}

func TestLifecycleByStatusAndOperation(t *testing.T) {
	s := servicetest.NewHarness(t)
	table, err := os.ReadFile("../../models/testdata/statuses.txt") // whose test explains it
	servicetest.Must(t, err)
	var operations []string
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if operations == nil {
			operations = words[1:]
			continue
		}
		from := words[0]
		for i, name := range operations {
			operation := models.Operation(name)
			t.Run(from+" "+name, func(t *testing.T) {
				id := s.WorkOrderIn(models.WorkOrderStatus(from))
				switch {
				case operation == models.OperationComplete && from != string(models.StatusSentToInspection): // where the last consultant stays
					servicetest.Must(t, removes(s, "erp", id, "cat"))
				case operation == models.OperationReturn:
					servicetest.Must(t, assigns(s, "erp", id, []string{"polar"}, nil))
				}
				s.ClearEffects(id)
				before := s.StatusOf(id)
				do := func() error { return does(s, operators[operation], operation, id) }
				if words[i+1] == "-" {
					expectOutcome(t, s, "the verdict", id, do, "rule_violation status")
					return
				}
				expectOutcome(t, s, "the verdict", id, do, "ok")
				to, after := words[i+1], words[i+1]
				switch to {
				case "stays":
					to, after = from, before
				case "on_hold":
					after = "on_hold from " + from
				}
				servicetest.Expect(t, "the status", s.StatusOf(id), after)
				servicetest.Expect(t, "the events", s.EventsOf(id), eventsOfMove(operation, from, to))
			})
		}
	}
	if len(operations) != len(operators) {
		t.Errorf("the table has %d operations, want %d", len(operations), len(operators))
	}
}

// eventsOfMove lists the events of an operation that moves a work order from one
// status to another (api.md 6.2).
func eventsOfMove(operation models.Operation, from, to string) string {
	switch {
	case operation == models.OperationUpdate:
		return "updated"
	case operation == models.OperationAssign || operation == models.OperationReturn:
		return "assignees_changed"
	case from == to:
		return ""
	}
	move := " " + from + ">" + to
	events := "status_changed" + move
	if kind, ends := map[string]string{"complete": "completed", "sent_to_inspection": "sent_to_inspection", "cancelled": "cancelled"}[to]; ends {
		events += ", " + kind + move
	}
	return events
}
