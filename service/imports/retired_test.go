package imports_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// wantProblem fails the test unless the import of the file is rejected with the sentence.
func wantProblem(t *testing.T, f *servicetest.Fixture, file, sentence string) {
	t.Helper()
	if _, err := f.Imports.Run(t.Context(), []byte(file)); err == nil || !strings.Contains(err.Error(), sentence) {
		t.Errorf("the error is %v, want %q", err, sentence)
	}
}

// An import leaves a retired node retired, and chooses it for nothing new.
func TestImportsLeaveNodesRetired(t *testing.T) {
	f := servicetest.New(t)
	const (
		node   = "organization: {key: acme}\ninventory: [{key: annex, kind: location, name: North annex"
		retire = `UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`
	)
	f.Exec(retire, f.ID("annex"))
	importFile(t, f, node+"}]\nassignments: [{node: annex, identity: eve, definition: manager}]")
	servicetest.Expect(t, "retired nodes",
		servicetest.Value[int](f, `SELECT count(*) FROM inventory_nodes WHERE name = 'North annex' AND retired_at IS NOT NULL`), 1)
	wantProblem(t, f, node+", children: [{key: room, kind: location, name: Room}]}]", `inventory node "room": the node "annex" above it is retired`)
	wantProblem(t, f, node+", children: [{key: mast, kind: system}]}]", `inventory node "mast": the node "annex" above it is retired`)
	wantProblem(t, f, "organization: {key: acme}\nassignments: [{node: annex, identity: dan, definition: reading}]", `assignment of "dan" on "annex": the node is retired`)
	wantProblem(t, f, "organization: {key: acme}\nassignments: [{node: annex, identity: eve, definition: reading}]", `assignment of "eve" on "annex": the node is retired`)
	f.Exec(retire, f.ID("mast"))
	importFile(t, f, node+", children: [{key: mast, kind: system}]}]")
}

// A retired definition keeps its assignments and gets no new ones until a file brings it back.
func TestImportsRetireDefinitions(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	retire := func(retired bool) {
		t.Helper()
		importFile(t, f, fmt.Sprintf("organization: {key: acme}\npermission_definitions: [{key: reading, retired: %t}]", retired))
	}
	retire(true)
	servicetest.Expect(t, "assigning",
		servicetest.Fields(f.Inventory.Assign(ctx, ann, store.NoKey, f.ID("annex"), f.ID("dan"), f.ID("reading"))), "/definition_id retired")
	choices, err := f.Records.AssigneeChoices(ctx, ann, f.ID("annex"))
	servicetest.Must(t, err)
	for _, d := range choices.Definitions {
		if d.ID == f.ID("reading") {
			t.Error("the definition is offered")
		}
	}
	servicetest.Expect(t, "the assignment", servicetest.AssignmentsOf(f, "hvac"), "reader=reading")
	const assign = "organization: {key: acme}\nassignments: [{node: %s, identity: %s, definition: reading}]"
	importFile(t, f, fmt.Sprintf(assign, "hvac", "reader"))
	wantProblem(t, f, fmt.Sprintf(assign, "annex", "dan"), `assignment of "dan" on "annex": the permission definition is retired`)
	retire(false)
	importFile(t, f, fmt.Sprintf(assign, "annex", "dan"))
	if log := servicetest.LogOf(f, f.ID("reading")); !strings.Contains(log, "definition.retired") || !strings.Contains(log, "definition.brought_back") {
		t.Errorf("the log says %q", log)
	}
}

// A retired organization permission definition stays with its people and integrations; no one else gets it.
func TestImportsRetireOrganizationDefinitions(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann, retired := t.Context(), servicetest.Person(t, f, "ann"), f.ID("org_nothing")
	const retire = "organization: {key: acme}\norganization_permission_definitions: [{key: org_nothing, retired: %t}]"
	importFile(t, f, fmt.Sprintf(retire, true))
	_, _, err := f.People.ChangePersonAccess(ctx, ann, store.NoKey, f.ID("bob"), people.AccessChange{DefinitionID: &retired})
	servicetest.Expect(t, "giving it to a person", servicetest.Fields(err), "/definition unknown")
	_, err = f.Integrations.CreateIntegration(ctx, ann, store.NoKey, f.Acme.OrganizationID, integrations.NewIntegration{Name: "New", Scopes: []string{"people:read"}, OrganizationDefinitionID: &retired})
	servicetest.Expect(t, "to a new integration", servicetest.Fields(err), "/organization_definition_id unknown")
	_, err = f.Integrations.ChangeIntegration(ctx, ann, store.NoKey, f.ID("reader"), integrations.Change{DefinitionID: &retired})
	servicetest.Expect(t, "to another integration", servicetest.Fields(err), "/organization_definition_id unknown")
	_, err = f.Integrations.ChangeIntegration(ctx, ann, store.NoKey, f.ID("erp"), integrations.Change{DefinitionID: &retired})
	servicetest.WantCode(t, "keeping it", err, "")
	const give = "organization: {key: acme}\npeople: [{key: bob, organization_definition: org_nothing}]"
	wantProblem(t, f, give, `person "bob": the organization permission definition is retired`)
	importFile(t, f, "organization: {key: acme}\nintegrations: [{key: erp, organization_definition: org_nothing}]")
	importFile(t, f, fmt.Sprintf(retire, false))
	importFile(t, f, give)
}

// A retired form stays on its work orders, and new ones cannot have it.
func TestImportsRetireForms(t *testing.T) {
	f := servicetest.New(t)
	ctx, form := t.Context(), f.ID("inspection")
	create := func() (string, error) {
		result, err := f.Records.CreateWorkOrder(ctx, f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Filter", FormID: &form, Assignees: []string{f.ID("bob")}})
		return result.RecordID, err
	}
	order, err := create()
	servicetest.Must(t, err)
	importFile(t, f, "organization: {key: acme}\nforms: [{key: inspection, retired: true}]")
	_, err = create()
	servicetest.Expect(t, "a new work order", servicetest.Fields(err), "/form_id retired")
	choices, err := f.Records.WorkOrderChoices(ctx, servicetest.Person(t, f, "ann"), f.ID("ahu1"), "", nil)
	if err != nil || len(choices.Forms) != 0 {
		t.Errorf("the forms to choose from are %+v (%v)", choices.Forms, err)
	}
	if _, err := f.Records.AnswerWorkOrder(ctx, servicetest.Person(t, f, "bob"), store.NoKey, order,
		[]records.GivenAnswer{{QuestionID: f.ID("q_note"), Value: "Fine"}}, records.SaveAnswers); err != nil {
		t.Errorf("a work order that has it: %v", err)
	}
	importFile(t, f, "organization: {key: acme}\nforms: [{key: inspection, retired: false}]")
	servicetest.WantCode(t, "after it came back", servicetest.ErrorOf(create()), "")
}

// The type, the options and the form of an answered question cannot change. Retired, it is asked
// no longer and keeps its answers.
func TestAnsweredQuestionsDoNotChange(t *testing.T) {
	f := servicetest.New(t)
	ctx, form, bob := t.Context(), f.ID("inspection"), servicetest.Person(t, f, "bob")
	var orders [2]string
	for i := range orders {
		result, err := f.Records.CreateWorkOrder(ctx, f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Filter", FormID: &form, Assignees: []string{f.ID("bob")}})
		servicetest.Must(t, err)
		orders[i] = result.RecordID
	}
	answer := func(order, question string, value any, completion records.Completion) error {
		_, err := f.Records.AnswerWorkOrder(ctx, bob, store.NoKey, order, []records.GivenAnswer{{QuestionID: f.ID(question), Value: value}}, completion)
		return err
	}
	servicetest.Must(t, answer(orders[0], "q_state", f.ID("o_ok"), records.SaveAnswers))
	const questions = "organization: {key: acme}\nforms: [{key: inspection, questions: [%s]}]"
	for question, what := range map[string]string{
		`{key: q_state, type: text}`: "type",
		`{key: q_state, type: single_choice, options: [{key: o_ok, label: Fine}, {key: o_dirty}]}`:                                    "options",
		`{key: q_state, type: single_choice, options: [{key: o_ok}, {key: o_dirty}, {key: o_gone, label: Gone}]}`:                     "options",
		`{key: q_parts, type: single_choice, options: [{key: o_ok}]}, {key: q_state, type: single_choice, options: [{key: o_dirty}]}`: "options",
	} {
		file := fmt.Sprintf(questions, question)
		want := `question "q_state": it has answers, so its ` + what + ` cannot change; retire it (retired: true)`
		wantProblem(t, f, file, want)
		if _, err := f.Imports.Overwrite(ctx, []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("overwriting: %v", err)
		}
	}
	wantProblem(t, f, "organization: {key: acme}\nforms: [{key: other, name: Other, questions: [{key: q_state, type: single_choice}]}]", "a choice has options")
	wantProblem(t, f, "organization: {key: acme}\nforms: [{key: other, name: Other, questions: [{key: q_state, type: single_choice, options: [{key: o_ok}, {key: o_dirty}]}]}]",
		`question "q_state": it has answers, so its form cannot change`)
	const state = `{key: q_state, label: State, %stype: single_choice, options: [{key: o_ok}, {key: o_dirty}]}`
	importFile(t, f, fmt.Sprintf(questions, fmt.Sprintf(state, "")+", {key: q_parts, type: text}")) // this question has no answers
	importFile(t, f, fmt.Sprintf(questions, fmt.Sprintf(state, "retired: true, ")))

	body, err := f.Inventory.Form(ctx, f.Actor("erp"), form)
	if err != nil || strings.Contains(string(body), f.ID("q_state")) {
		t.Errorf("the form is %s (%v)", body, err)
	}
	for i, order := range orders {
		body, err := f.Records.Answers(ctx, f.Actor("erp"), order)
		servicetest.Must(t, err)
		servicetest.Expect(t, fmt.Sprintf("work order %d shows the question", i), strings.Contains(string(body), f.ID("q_state")), i == 0)
		servicetest.Expect(t, "an answer to it",
			servicetest.Fields(answer(order, "q_state", f.ID("o_dirty"), records.SaveAnswers)), "/answers/0/question_id retired")
		servicetest.WantCode(t, "completing without it",
			answer(order, "q_hours", json.Number("7"), records.CompleteWork), "")
	}
	if log := servicetest.LogOf(f, f.ID("q_state")); !strings.Contains(log, "form.question_retired") {
		t.Errorf("the log says %q", log)
	}
}
