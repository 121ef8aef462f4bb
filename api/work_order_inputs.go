package api

import (
	"bytes"
	"encoding/json"
	"time"

	"millwright/models"
	"millwright/service/records"
)

type createWorkOrderInput struct {
	WriteInput
	Body newWorkOrder
}

// newWorkOrder is the body of POST /work-orders.
type newWorkOrder struct {
	InventoryID string       `json:"inventory_id" minLength:"1" maxLength:"64" doc:"The location, system or equipment of the work order." example:"eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Title       string       `json:"title" minLength:"1" maxLength:"200" doc:"Title." example:"Replace filter"`
	Description *string      `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description." example:"The pressure drop is above the limit."`
	Priority    string       `json:"priority,omitempty" enum:"none,low,medium,high" default:"none" doc:"Priority." example:"medium"`
	TargetDate  *models.Time `json:"target_date,omitempty" format:"date-time" nullable:"true" doc:"When the work should be done; in UTC, in the years 1 to 9999." example:"2026-12-01T12:00:00Z"`
	FormID      *string      `json:"form_id,omitempty" nullable:"true" maxLength:"64" doc:"The form to answer: one of GET /forms." example:"frm_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Assignees   []string     `json:"assignees,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the workers. Default: the nearest inventory managers who are not consultants; without any, an assignee is required."`
	Consultants []string     `json:"consultants,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the consultants who review the completed work."`
	ExternalID  *string      `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; several work orders may have the same." example:"ERP-7781"`
}

func (b newWorkOrder) workOrder() records.NewWorkOrder {
	return records.NewWorkOrder{
		InventoryID: b.InventoryID,
		Title:       b.Title,
		Description: b.Description,
		Priority:    models.Priority(b.Priority),
		TargetDate:  b.TargetDate,
		FormID:      b.FormID,
		Assignees:   b.Assignees,
		Consultants: b.Consultants,
		ExternalID:  b.ExternalID,
	}
}

// workOrderInput is the input of reads of one work order.
type workOrderInput struct {
	ReadInput
	ID string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

type listWorkOrdersInput struct {
	ListInput
	Status       []string  `query:"status" enum:"open,in_progress,sent_to_inspection,back_from_inspection,complete,cancelled,on_hold" doc:"Only work orders with these status codes, separated by commas."`
	InventoryID  idParam   `query:"inventory_id" doc:"Only work orders of this node and the nodes below it."`
	AssigneeID   idParam   `query:"assignee_id" doc:"Only work orders with this identity as worker or consultant."`
	ExternalID   string    `query:"external_id" minLength:"1" maxLength:"200" doc:"Only work orders with this external_id."`
	CreatedSince time.Time `query:"created_since" doc:"Only work orders created at or after this time."`
}

func (in *listWorkOrdersInput) filter() records.WorkOrderFilter {
	filter := records.WorkOrderFilter{InventoryID: string(in.InventoryID), AssigneeID: string(in.AssigneeID), ExternalID: in.ExternalID}
	for _, code := range in.Status {
		filter.Statuses = append(filter.Statuses, models.WorkOrderStatus(code))
	}
	if !in.CreatedSince.IsZero() {
		filter.CreatedSince = new(models.TimeOf(in.CreatedSince))
	}
	return filter
}

type updateWorkOrderInput struct {
	ChangeInput
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body workOrderPatch
}

// workOrderPatch is the body of PATCH /work-orders/{id}.
type workOrderPatch struct {
	Title       *string      `json:"title,omitempty" minLength:"1" maxLength:"200" doc:"Title." example:"Replace both filters"`
	Description *string      `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description; null clears it." example:"The spare is in store 2."`
	Priority    *string      `json:"priority,omitempty" enum:"none,low,medium,high" doc:"Priority." example:"high"`
	TargetDate  *models.Time `json:"target_date,omitempty" format:"date-time" nullable:"true" doc:"When the work should be done; null clears it." example:"2026-12-01T12:00:00Z"`
	ExternalID  *string      `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; null clears it." example:"ERP-7782"`

	// sent are the fields of the body, to distinguish null from absent.
	sent map[string]json.RawMessage
}

// UnmarshalJSON decodes the body and notes which fields it has.
func (b *workOrderPatch) UnmarshalJSON(body []byte) error {
	type fields workOrderPatch
	if err := json.Unmarshal(body, (*fields)(b)); err != nil {
		return err
	}
	return json.Unmarshal(body, &b.sent)
}

func (b *workOrderPatch) patch() records.WorkOrderPatch {
	patch := records.WorkOrderPatch{
		Description: records.Sent[*string]{Value: b.Description, Set: b.sent["description"] != nil},
		ExternalID:  records.Sent[*string]{Value: b.ExternalID, Set: b.sent["external_id"] != nil},
		TargetDate:  records.Sent[*models.Time]{Value: b.TargetDate, Set: b.sent["target_date"] != nil},
	}
	if b.Title != nil {
		patch.Title = records.Sent[string]{Value: *b.Title, Set: true}
	}
	if b.Priority != nil {
		patch.Priority = records.Sent[models.Priority]{Value: models.Priority(*b.Priority), Set: true}
	}
	return patch
}

type assignWorkOrderInput struct {
	ChangeInput
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body assignment
}

// assignment is the body of POST /work-orders/{id}/assignees.
type assignment struct {
	Assignees   []string `json:"assignees,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the workers to add."`
	Consultants []string `json:"consultants,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the consultants to add."`
}

type unassignWorkOrderInput struct {
	ChangeInput
	ID         string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	IdentityID string `path:"identity_id" doc:"Identity id of the worker or consultant." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

type cancelWorkOrderInput struct {
	ChangeInput
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body *cancellation
}

// cancellation is the body of POST /work-orders/{id}/cancel.
type cancellation struct {
	Reason *string `json:"reason,omitempty" nullable:"true" maxLength:"1000" doc:"The reason, for people." example:"Duplicate of number 1041"`
}

// reason returns the reason, nil if none was given. The body is optional.
func (b *cancellation) reason() *string {
	if b == nil {
		return nil
	}
	return b.Reason
}

type answerWorkOrderInput struct {
	ChangeInput
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body givenAnswers
}

// givenAnswers is the body of POST /work-orders/{id}/answers.
type givenAnswers struct {
	Answers  []givenAnswer `json:"answers,omitempty" maxItems:"500" nullable:"false" doc:"Answers to questions of the work order's form; required unless complete is true. An empty list starts the work."`
	Complete bool          `json:"complete,omitempty" doc:"Whether to complete the work order too."`
}

type givenAnswer struct {
	QuestionID string `json:"question_id" maxLength:"64" doc:"The question." example:"qst_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Value      any    `json:"value" doc:"Depending on the question's type, an option's id, a list of options' ids, an integer of at most 18 digits, which may be written as 5.0, a decimal number of at most 30 digits on each side of the point, or a string; null clears the answer."`
}

// UnmarshalJSON decodes the body with json.Number values, which keep their digits.
func (b *givenAnswers) UnmarshalJSON(body []byte) error {
	type fields givenAnswers
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return decoder.Decode((*fields)(b))
}

// answers returns the answers, which only a completion may leave out. Errors: validation_failed.
func (b givenAnswers) answers() ([]records.GivenAnswer, error) {
	if b.Answers == nil && !b.Complete {
		return nil, models.Invalid(models.FieldError{Pointer: "/answers", Code: "required", Detail: "This field is required unless complete is true."})
	}
	answers := make([]records.GivenAnswer, len(b.Answers))
	for i, answer := range b.Answers {
		answers[i] = records.GivenAnswer(answer)
	}
	return answers, nil
}
