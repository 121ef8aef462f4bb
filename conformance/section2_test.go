package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
)

var section2 = slices.Concat(workOrderRecord, feedbackRecord, answerValues, answerInput, identities)

// field is a rule about a field of a work order: values that it accepts, by how they
// are shown, and values that it rejects.
func field(name, words, code string, accepted map[string]any, rejected ...any) rule {
	return rule{item: "work order field " + name, words: words, code: code, test: func(t *testing.T, h *harness) {
		for shown, value := range accepted {
			want(t, name, h.create(object{name: value}).Field(name), any(shown))
		}
		for _, value := range rejected {
			h.post("/work-orders", h.body(object{name: value})).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}}
}

// roles is a rule about a field that lists identities.
func roles(name, words, code string) rule {
	return rule{item: "work order field " + name, words: words, code: code, test: func(t *testing.T, h *harness) {
		made := h.create(object{"assignees": h.ids("erp"), name: h.ids("bob", "crew")})
		wantList(t, name, stringList(made, name), h.ids("bob", "crew")...)
		wantList(t, name+" as read", stringList(h.read(made.Text("id")), name), h.ids("bob", "crew")...)
		for _, value := range []any{h.ID("bob"), []any{7}, []string{"outsider"}} {
			h.post("/work-orders", h.body(object{name: value})).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}}
}

var workOrderRecord = []rule{
	{item: "work order field id", words: "a string that identifies it", code: "models.NewID", test: func(t *testing.T, h *harness) {
		first, second := h.workOrder(nil), h.workOrder(nil)
		want(t, "the id has the documented form", regexp.MustCompile(`^wo_[0-9a-z]{26}$`).MatchString(first), true)
		want(t, "two ids are equal", first == second, false)
		want(t, "the id of the record", h.read(first).Text("id"), first)
	}},
	{item: "work order field inventory_id", words: "its location, system or equipment; required to create it", code: "service/records.workOrderCreation.checkNames, service/records.creationPlace.checkKind", test: func(t *testing.T, h *harness) {
		for _, node := range []string{"hq", "hvac", "ahu1"} {
			want(t, node, h.create(object{"inventory_id": h.ID(node)}).Text("inventory_id"), h.ID(node))
		}
		for _, body := range []object{{"title": "x"}, {"title": "x", "inventory_id": "x"}, {"title": "x", "inventory_id": h.ID("fan1")}} {
			h.post("/work-orders", body).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}},
	{item: "record field inventory", words: "work orders and feedback show their node and its path, even to a reader who may not read the node", code: "service/records.(*WorkOrderRow).Shown, service/records.(*FeedbackRow).Shown", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"assignees": h.ids("erp", "polar")})
		given := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		for _, record := range []apitest.Response{
			h.read(id), h.get("/issues/" + given), h.As("dispatch", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, ""),
		} {
			want(t, "the node", asJSON(record.Field("inventory")), asJSON(object{
				"id": h.ID("ahu1"), "kind": "equipment", "name": "AHU 1", "external_id": "AHU-1", "path": []object{
					{"id": h.ID("hq"), "kind": "location", "name": "Headquarters"}, {"id": h.ID("hvac"), "kind": "system", "name": "HVAC"},
				},
			}))
		}
	}},
	{item: "work order field title", words: "a string, required to create it", code: "api.newWorkOrder.workOrder", test: func(t *testing.T, h *harness) {
		want(t, "title", h.create(object{"title": "Öl & <Filter>"}).Text("title"), "Öl & <Filter>")
		h.post("/work-orders", object{"inventory_id": h.ID("ahu1")}).Want(http.StatusUnprocessableEntity, "validation_failed")
		for _, title := range []any{7, "", " \u00a0\n", "a\x00b", "a\x1bb", nil} {
			h.post("/work-orders", h.body(object{"title": title})).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}},
	field("description", "a string", "api.newWorkOrder.workOrder", map[string]any{"Line one\nline two": "Line one\nline two"}, 7, []string{"x"}),
	{item: "work order field priority", words: "one of four values", code: "api.newWorkOrder.workOrder", test: wantPriorities},
	field("target_date", "a time, shown in UTC", "models.Time.MarshalJSON", map[string]any{
		"2026-03-05T12:00:00.000Z": "2026-03-05T14:00:00+02:00", "2026-03-05T12:00:00.250Z": "2026-03-05T12:00:00.25Z",
	}, "tomorrow", "2026-03-05", 1772712000),
	{item: "work order field form_id", words: "one of the listed forms", code: "service/records.workOrderCreation.checkNames", test: wantListedForms},
	roles("assignees", "identity ids of the workers", "service/records.insertWorkOrder, service/records.candidates.checkKnown"),
	roles("consultants", "identity ids of the consultants", "service/records.insertWorkOrder, service/records.candidates.checkKnown"),
	{item: "work order field consultants, none", words: "may be empty", code: "service/records.workOrderCreation.row", test: func(t *testing.T, h *harness) {
		for _, fields := range []object{nil, {"consultants": []string{}}} {
			consultants, isList := h.create(fields).Field("consultants").([]any)
			want(t, "an empty list", isList && len(consultants) == 0, true)
		}
	}},
	field("external_id", "the caller's own reference", "service/records.workOrderCreation.row", map[string]any{"ERP/7781 ä": "ERP/7781 ä"}, 7, ""),
	{item: "work order field status", words: "a code and an English name", code: "models.WorkOrderStatus.Name", test: wantStatusNames},
}

var feedbackRecord = []rule{
	{item: "feedback field inventory_id", words: "the node it is about; required to create it", code: "service/records.(*Records).CreateFeedback", test: func(t *testing.T, h *harness) {
		for _, node := range []string{"hq", "hvac", "ahu1", "fan1"} {
			made := h.feedback(object{"inventory_id": h.ID(node)}).Want(http.StatusCreated, "")
			want(t, "inventory_id", made.Text("inventory_id"), h.ID(node))
		}
		h.post("/issues", object{"subject": "x"}).Want(http.StatusUnprocessableEntity, "validation_failed")
	}},
	{item: "feedback field subject", words: "a string", code: "service/records.(*Records).CreateFeedback", test: func(t *testing.T, h *harness) {
		want(t, "subject", h.feedback(object{"subject": "Es klappert"}).Want(http.StatusCreated, "").Text("subject"), "Es klappert")
		h.feedback(object{"subject": 7}).Want(http.StatusUnprocessableEntity, "validation_failed")
	}},
	{item: "feedback field description", words: "a string", code: "service/records.(*Records).CreateFeedback", test: func(t *testing.T, h *harness) {
		want(t, "description", h.feedback(object{"description": "At night"}).Want(http.StatusCreated, "").Text("description"), "At night")
		h.feedback(object{"description": 7}).Want(http.StatusUnprocessableEntity, "validation_failed")
	}},
	{item: "feedback field external_id", words: "unique: a second use is a conflict", code: "service/records.feedbackCreation.check", test: wantUniqueExternalIDs},
}

// value is a rule about one type of question: values that are returned as they were
// sent, and values that are rejected.
func value(kind, words, code, question string, accepted func(h *harness) []any, rejected func(h *harness) []any) rule {
	return rule{item: "answer field value, " + kind, words: words, code: code, test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"form_id": h.ID("inspection")})
		for _, value := range accepted(h) {
			h.answer(id, false, h.to(question, value)).Want(http.StatusOK, "")
			want(t, "the answer", asJSON(h.shownAnswer(id, question)), asJSON(value))
		}
		for _, value := range rejected(h) {
			h.answer(id, false, h.to(question, value)).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}}
}

var answerValues = []rule{
	value("single choice", "an option's id", "models.AnswerRules.Normalize", "q_state",
		func(h *harness) []any { return []any{h.ID("o_ok"), h.ID("o_dirty")} },
		func(h *harness) []any { return []any{"OK", h.ID("o_belt"), []string{h.ID("o_ok")}, 1, true} }),
	value("multiple choice", "a list of options' ids", "models.AnswerRules.Normalize", "q_parts",
		func(h *harness) []any { return []any{h.ids("o_belt"), h.ids("o_belt", "o_filter")} },
		func(h *harness) []any { return []any{h.ID("o_belt"), []string{"Belt"}, h.ids("o_ok"), []int{1}, 1} }),
	value("integer", "a whole number", "models.AnswerRules.Normalize", "q_hours",
		func(*harness) []any { return []any{0, 12, -3} },
		func(*harness) []any { return []any{1.5, "12", true, []int{1}} }),
	value("decimal", "a decimal number", "models.AnswerRules.Normalize", "q_pressure",
		func(*harness) []any { return []any{2.5, -0.125, 3} },
		func(*harness) []any { return []any{"2.5", true, []float64{2.5}} }),
	value("text", "a string", "models.AnswerRules.Normalize", "q_note",
		func(*harness) []any { return []any{"Fine", "Zwei\nZeilen"} },
		func(*harness) []any { return []any{5, true, []string{"x"}} }),
}

var answerInput = []rule{
	{item: "answer field answers", words: "a list of objects with a question and a value", code: "service/records.(*workOrderChange).saveAnswers", test: wantSentAnswers},
	{item: "answer field value, digits", words: "numbers keep their digits; exponents are expanded, up to 30 digits on each side of the point", code: "models.AnswerRules.Normalize", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"form_id": h.ID("inspection")})
		send := func(question, value string) apitest.Response {
			return h.post("/work-orders/"+id+"/answers", fmt.Sprintf(`{"answers":[{"question_id":%q,"value":%s}]}`, h.ID(question), value))
		}
		for value, shown := range map[string]string{"1e-05": "0.00001", "1.50": "1.50", "12.5e1": "125", "0.1000000000000000055511151231": "0.1000000000000000055511151231"} {
			send("q_pressure", value).Want(http.StatusOK, "")
			body := string(h.get("/work-orders/" + id + "/answers").Body)
			want(t, value+" is shown as "+shown, strings.Contains(body, `"value":`+shown+`,`), true)
		}
		send("q_hours", "5.0").Want(http.StatusOK, "")
		want(t, "5.0 is an integer", asJSON(h.shownAnswer(id, "q_hours")), "5")
		for _, value := range []string{"1e30", "1e-31", strings.Repeat("9", 101), "1e999"} {
			send("q_pressure", value).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}},
	{item: "answer field complete", words: "true completes the work order too", code: "service/records.(*Records).AnswerWorkOrder", test: func(t *testing.T, h *harness) {
		for complete, status := range map[bool]string{true: "complete", false: "in_progress"} {
			id := h.workOrder(object{"form_id": h.ID("inspection")})
			want(t, "the status", h.answer(id, complete, h.required()...).Want(http.StatusOK, "").Text("status", "code"), status)
			want(t, "answers are saved", len(h.answered(id)), 2)
		}
		alone := h.post("/work-orders/"+h.workOrder(nil)+"/answers", object{"complete": true})
		want(t, "the status of one without answers", alone.Want(http.StatusOK, "").Text("status", "code"), "complete")
		h.post("/work-orders/"+h.workOrder(nil)+"/answers", object{"answers": []any{}, "complete": "yes"}).
			Want(http.StatusUnprocessableEntity, "validation_failed")
	}},
	{item: "answers as read", words: "each question shows its type and options", code: "service/records.(*Records).Answers", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"form_id": h.ID("inspection")})
		questions := h.get("/work-orders/"+id+"/answers").Want(http.StatusOK, "").Field("questions").([]any)
		var kinds []string
		for _, q := range questions {
			kinds = append(kinds, q.(object)["type"].(string))
		}
		wantList(t, "types", kinds, "single_choice", "multiple_choice", "integer", "decimal", "text")
		option := questions[0].(object)["options"].([]any)[0].(object)
		want(t, "the first option", option["id"], any(h.ID("o_ok")))
		want(t, "its label", option["label"], any("OK"))
	}},
}

var identities = []rule{
	{item: "identities 1", words: "a person, team, organization or integration, by its id", code: "service/records.withIDs", test: func(t *testing.T, h *harness) {
		keys := []string{"bob", "crew", "polar", "erp"}
		made := h.create(object{"assignees": h.ids(keys...)})
		wantList(t, "the workers", stringList(made, "assignees"), h.ids(keys...)...)
		kinds := map[string]any{}
		for _, p := range made.Field("people").([]any) {
			person := p.(object)
			kinds[person["identity_id"].(string)] = person["kind"]
		}
		for key, kind := range map[string]string{"bob": "person", "crew": "team", "polar": "organization", "erp": "integration"} {
			want(t, key, kinds[h.ID(key)], any(kind))
		}
	}},
	{item: "identities 2, ids", words: "without people:read, records contain only their ids", code: "service/records.(*Records).WorkOrder", test: func(t *testing.T, h *harness) {
		path := "/work-orders/" + h.workOrder(object{"assignees": h.ids("ann")})
		bare := h.callWithScopes("work_orders:read", http.MethodGet, path, nil).Want(http.StatusOK, "")
		wantList(t, "the workers", stringList(bare, "assignees"), h.ID("ann"))
		for _, secret := range []string{"Ann Field", "ann@acme.example.com", "+12025550101"} {
			want(t, "the response contains "+secret, regexp.MustCompile(regexp.QuoteMeta(secret)).Match(bare.Body), false)
		}
	}},
	{item: "identities 2, people", words: "with it, records contain their personal data too", code: "service/records.(*Records).WorkOrder", test: func(t *testing.T, h *harness) {
		path := "/work-orders/" + h.workOrder(object{"assignees": h.ids("ann")})
		full := h.callWithScopes("work_orders:read people:read", http.MethodGet, path, nil).Want(http.StatusOK, "")
		found := false
		for _, p := range full.Field("people").([]any) {
			if person := p.(object); person["identity_id"] == h.ID("ann") {
				found = true
				want(t, "name", person["name"], any("Ann Field"))
				want(t, "email", person["email"], any("ann@acme.example.com"))
				want(t, "phone", person["phone"], any("+12025550101"))
			}
		}
		want(t, "people contains Ann", found, true)
	}},
}

// shownAnswer returns the value of a question's answer as it is read.
func (h *harness) shownAnswer(id, question string) any {
	h.t.Helper()
	for _, q := range h.get("/work-orders/"+id+"/answers").Want(http.StatusOK, "").Field("questions").([]any) {
		if found := q.(object); found["id"] == h.ID(question) {
			return found["value"]
		}
	}
	h.t.Errorf("the answers do not contain the question %s", question)
	return nil
}
