package service_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"millwright/models"
	"millwright/service"
)

// The response to a write is the record as its GET shows it afterwards, although the
// write does not load what it has written.
func TestAWriteRespondsWithTheRecordAsItsGetShowsIt(t *testing.T) {
	for _, people := range []bool{false, true} {
		h := newHarness(t)
		erp, ctx := h.as("erp"), t.Context()
		erp.ShowPeople = people
		id := ""
		same := func(what string, result service.WriteResult, err error) {
			t.Helper()
			h.mustWrite(result, err)
			id = result.RecordID
			shown, err := h.WorkOrder(ctx, erp, id)
			if err != nil {
				t.Fatal(err)
			}
			if string(result.Body) != string(shown) {
				t.Errorf("%s, people shown %t: the response is\n%s\nGET shows\n%s", what, people, result.Body, shown)
			}
		}
		description, reference, form, reason := "Öl & \"Filter\"\n", "PO-17", h.ID("inspection"), "not needed"
		target := models.TimeOf(time.Date(2026, 5, 1, 7, 0, 0, 1_999_999, time.UTC))
		result, err := h.CreateWorkOrder(ctx, erp, service.Call{}, service.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})
		same("a creation for the managers", result, err)
		result, err = h.CreateWorkOrder(ctx, erp, service.Call{}, service.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: "Replace filter", Description: &description, ExternalID: &reference, FormID: &form,
			Priority: models.PriorityHigh, TargetDate: &target, Assignees: h.ids("erp", "crew", "polar"), Consultants: h.ids("cat", "bob"),
		})
		same("a creation with everything", result, err)
		result, err = h.UpdateWorkOrder(ctx, erp, service.Call{Key: "k", Method: "PATCH", Path: "/", Fingerprint: []byte("body")}, id, service.WorkOrderPatch{
			Title: service.Sent[string]{Value: "Replace both", Set: true}, Description: service.Sent[*string]{Set: true},
			TargetDate: service.Sent[*models.Time]{Set: true}, Priority: service.Sent[models.Priority]{Value: models.PriorityLow, Set: true},
		})
		same("a change", result, err)
		result, err = h.UpdateWorkOrder(ctx, erp, service.Call{}, id, service.WorkOrderPatch{
			Description: service.Sent[*string]{Value: &reason, Set: true}, TargetDate: service.Sent[*models.Time]{Value: &target, Set: true},
			ExternalID: service.Sent[*string]{Set: true},
		})
		same("another change", result, err)
		result, err = h.UpdateWorkOrder(ctx, erp, service.Call{}, id, service.WorkOrderPatch{})
		same("no change", result, err)
		result, err = h.AssignWorkOrder(ctx, erp, service.Call{}, id, h.ids("ann"), h.ids("dan"))
		same("an assignment", result, err)
		result, err = h.UnassignWorkOrder(ctx, erp, service.Call{}, id, h.ID("bob"))
		same("its end", result, err)
		result, err = h.AnswerWorkOrder(ctx, erp, service.Call{}, id, []service.GivenAnswer{
			{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, service.SaveAnswers)
		same("answers", result, err)
		result, err = h.HoldWorkOrder(ctx, h.as("ann"), service.Call{}, id)
		if people { // the app shows them
			same("a hold", result, err)
		}
		if result, err = h.ResumeWorkOrder(ctx, h.as("ann"), service.Call{}, id); people {
			same("a resumption", result, err)
		}
		result, err = h.AnswerWorkOrder(ctx, erp, service.Call{}, id, nil, service.CompleteWork)
		same("a completion", result, err)
		if result, err = h.ReviewWorkOrder(ctx, h.as("cat"), service.Call{}, id, service.Review{Approve: true}); people {
			same("an approval", result, err)
		}
		id = h.newWorkOrder([]string{"erp"}, nil)
		result, err = h.CancelWorkOrder(ctx, erp, service.Call{}, id, &reason)
		same("a cancellation", result, err)
	}
}

// A change and a creation take one round trip to read and one to write, with COMMIT.
func TestRoundTripsOfAWrite(t *testing.T) {
	h := newHarness(t)
	id, erp := h.newWorkOrder([]string{"erp"}, nil), h.as("erp")
	for what, write := range map[string]func(context.Context, service.Call) (service.WriteResult, error){
		"a change": func(ctx context.Context, call service.Call) (service.WriteResult, error) {
			return h.UpdateWorkOrder(ctx, erp, call, id, service.WorkOrderPatch{Title: service.Sent[string]{Value: "Replace both", Set: true}})
		},
		"a creation": func(ctx context.Context, call service.Call) (service.WriteResult, error) {
			return h.CreateWorkOrder(ctx, erp, call, service.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})
		},
	} {
		kept := tracetest.NewInMemoryExporter()
		ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test").Start(t.Context(), "call")
		_, err := write(ctx, service.Call{Key: what, Method: "PATCH", Path: "/", Fingerprint: []byte("body")})
		span.End()
		if err != nil {
			t.Fatal(err)
		}
		trips := 0
		for _, span := range kept.GetSpans() {
			if span.Name == "postgresql" {
				trips++
			}
		}
		if trips != 2 {
			t.Errorf("%s takes %d round trips, want 2", what, trips)
		}
	}
}

// A creation that is rejected or repeated leaves no gap in the numbers.
func TestARejectedCreationLeavesNoGap(t *testing.T) {
	h := newHarness(t)
	call := service.Call{Key: "k", Method: "POST", Path: "/", Fingerprint: []byte("body")}
	actors := map[string]service.Actor{"erp": h.as("erp"), "reader": h.as("reader"), "outsider": h.as("outsider")}
	create := func(actor string, call service.Call, in service.NewWorkOrder) (service.WriteResult, error) {
		in.Title = "Replace filter"
		return h.CreateWorkOrder(t.Context(), actors[actor], call, in)
	}
	possible, unknown := service.NewWorkOrder{InventoryID: h.ID("ahu1")}, "frm_01kjq7k5pge00a5z4cn7dzgdpj"
	subEquipment, assignee := h.ID("fan1"), "idn_01kjq7k5pge00a5z4cn7dzgdpj"
	before := h.mustWrite(create("erp", call, possible)).Number
	var creations sync.WaitGroup
	for range 20 {
		creations.Go(func() {
			for _, actor := range []string{"reader", "outsider"} {
				if _, err := create(actor, service.Call{}, possible); err == nil {
					t.Errorf("%s creates a work order", actor)
				}
			}
			for what, in := range map[string]service.NewWorkOrder{
				"on sub-equipment": {InventoryID: subEquipment}, "with an unknown form": {InventoryID: possible.InventoryID, FormID: &unknown},
				"with an unknown assignee": {InventoryID: possible.InventoryID, Assignees: []string{assignee}},
			} {
				if _, err := create("erp", service.Call{}, in); err == nil {
					t.Errorf("a work order %s is created", what)
				}
			}
			if result, err := create("erp", call, possible); err != nil || !result.Replayed {
				t.Errorf("a repetition returns %v, replayed %t", err, result.Replayed)
			}
		})
	}
	creations.Wait()
	numbers := map[int64]bool{}
	const most = 20 * 4 // rejected and repeated at the same time
	for range most {
		numbers[h.mustWrite(create("erp", service.Call{}, possible)).Number] = true
	}
	for number := before + 1; number <= before+most; number++ {
		if !numbers[number] {
			t.Errorf("no work order has the number %d", number)
		}
	}
}
