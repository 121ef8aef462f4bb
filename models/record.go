package models

// Status is a status as records show it.
type Status struct {
	Code string `json:"code" doc:"Status code." example:"open"`
	Name string `json:"name" doc:"Status name in English." example:"Open"`
}

// StatusOf returns a status of a work order or of feedback as records show it.
func StatusOf[S interface {
	~string
	Name() string
}](s S) Status {
	return Status{Code: string(s), Name: s.Name()}
}

// NamedIdentity is an identity with its personal data, shown only with people:read.
type NamedIdentity struct {
	IdentityID string       `json:"identity_id" doc:"Identity id." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Kind       IdentityKind `json:"kind" enum:"person,team,organization,integration" doc:"What the identity is." example:"person"`
	Name       string       `json:"name" doc:"Name." example:"Ann Field"`
	Email      *string      `json:"email" doc:"E-mail address; null if the identity has none." example:"ann@example.com"`
	Phone      *string      `json:"phone" doc:"Phone number; null if the identity has none." example:"+15550100"`
}

// NodeReference is the inventory node of a record, shown to every reader of the record,
// whether or not it may read the node.
type NodeReference struct {
	ID         string     `json:"id" doc:"Identifier: the record's inventory_id." example:"eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Kind       NodeKind   `json:"kind" enum:"location,system,equipment,sub_equipment" doc:"Level of the inventory." example:"equipment"`
	Name       string     `json:"name" doc:"Name." example:"AHU 1"`
	ExternalID *string    `json:"external_id" doc:"Code of the asset in another system, or null." example:"AHU-1"`
	Path       []PathNode `json:"path" nullable:"false" doc:"The nodes above it, from the root down; empty at the top."`
}

// PathNode is a node above the inventory node of a record.
type PathNode struct {
	ID   string   `json:"id" doc:"Identifier." example:"loc_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Kind NodeKind `json:"kind" enum:"location,system,equipment" doc:"Level of the inventory." example:"location"`
	Name string   `json:"name" doc:"Name." example:"Headquarters"`
}

// WorkOrderRecord is a work order as GET /work-orders/{id} shows it (api.md 2.1).
type WorkOrderRecord struct {
	ID             string          `json:"id" doc:"Identifier." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	OrganizationID string          `json:"organization_id" doc:"The organization the work order belongs to." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3ta"`
	Number         int64           `json:"number" doc:"Number in the organization, for people." example:"1042"`
	InventoryID    string          `json:"inventory_id" doc:"The location, system or equipment it belongs to." example:"eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Inventory      NodeReference   `json:"inventory" doc:"The same node and where it is, even if the integration may not read the node itself."`
	Title          string          `json:"title" doc:"Title." example:"Replace filter"`
	Description    *string         `json:"description" doc:"Description, or null." example:"The pressure drop is above the limit."`
	Priority       Priority        `json:"priority" enum:"none,low,medium,high" doc:"Priority." example:"medium"`
	TargetDate     *Time           `json:"target_date" format:"date-time" doc:"When it should be done, or null." example:"2026-12-01T12:00:00.000Z"`
	FormID         *string         `json:"form_id" doc:"The form to answer, or null." example:"frm_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Assignees      []string        `json:"assignees" nullable:"false" uniqueItems:"true" doc:"Identity ids of the workers."`
	Consultants    []string        `json:"consultants" nullable:"false" uniqueItems:"true" doc:"Identity ids of the consultants; may be empty."`
	ExternalID     *string         `json:"external_id" doc:"The caller's own reference, or null." example:"ERP-7781"`
	Status         Status          `json:"status" doc:"Current status."`
	CancelReason   *string         `json:"cancel_reason" doc:"Why it was cancelled, or null." example:"Duplicate"`
	CreatedBy      string          `json:"created_by" doc:"Identity id of its creator." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3td"`
	CreatedAt      Time            `json:"created_at" format:"date-time" doc:"When it was created." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt      Time            `json:"changed_at" format:"date-time" doc:"When it last changed; strictly increases with each change; the field to order by." example:"2026-03-02T12:15:30.000Z"`
	CompletedAt    *Time           `json:"completed_at" format:"date-time" doc:"When it was completed, or null." example:"2026-03-02T12:15:30.000Z"`
	CancelledAt    *Time           `json:"cancelled_at" format:"date-time" doc:"When it was cancelled, or null." example:"2026-03-02T12:15:30.000Z"`
	People         []NamedIdentity `json:"people,omitempty" nullable:"false" doc:"Every identity the record names; only with scope people:read."`
}

// FeedbackRecord is feedback as GET /issues/{id} shows it (api.md 2.2).
type FeedbackRecord struct {
	ID             string          `json:"id" doc:"Identifier." example:"iss_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	OrganizationID string          `json:"organization_id" doc:"The organization the feedback belongs to." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3ta"`
	InventoryID    string          `json:"inventory_id" doc:"The node the feedback concerns." example:"loc_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Inventory      NodeReference   `json:"inventory" doc:"The same node and where it is, even if the integration may not read the node itself."`
	Subject        string          `json:"subject" doc:"Subject." example:"The light flickers"`
	Description    *string         `json:"description" doc:"Description, or null." example:"In the corridor of the second floor."`
	ExternalID     *string         `json:"external_id" doc:"The caller's own reference, or null." example:"DESK-19"`
	Status         Status          `json:"status" doc:"Current status."`
	CreatedBy      string          `json:"created_by" doc:"Identity id of its creator." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3td"`
	CreatedAt      Time            `json:"created_at" format:"date-time" doc:"When it was created." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt      Time            `json:"changed_at" format:"date-time" doc:"When it last changed; the field to order by." example:"2026-03-02T12:15:30.000Z"`
	ResolvedAt     *Time           `json:"resolved_at" format:"date-time" doc:"When it was resolved, or null." example:"2026-03-02T12:15:30.000Z"`
	People         []NamedIdentity `json:"people,omitempty" nullable:"false" doc:"Every identity the record names; only with scope people:read."`
}

// NodeRecord is an inventory node as its read endpoints show it (api.md 2.5).
type NodeRecord struct {
	ID          string   `json:"id" doc:"Identifier." example:"eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Kind        NodeKind `json:"kind" enum:"location,system,equipment,sub_equipment" doc:"Level of the inventory." example:"equipment"`
	ParentID    *string  `json:"parent_id" doc:"The node above, or null at the top." example:"sys_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Ancestors   []string `json:"ancestors" nullable:"false" uniqueItems:"true" doc:"Every node above, from the root down."`
	Name        string   `json:"name" doc:"Name." example:"AHU 1"`
	Description *string  `json:"description" doc:"Description, or null." example:"Supply air of the north wing"`
	ExternalID  *string  `json:"external_id" doc:"Code of the asset in another system, or null." example:"AHU-1"`
	Retired     bool     `json:"retired" doc:"True if the node keeps its records and new ones cannot have it."`
	CreatedAt   Time     `json:"created_at" format:"date-time" doc:"When it was created." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt   Time     `json:"changed_at" format:"date-time" doc:"When it last changed." example:"2026-03-02T12:15:30.000Z"`
}

// FormRecord is a form with its questions.
type FormRecord struct {
	ID        string           `json:"id" doc:"Identifier." example:"frm_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Name      string           `json:"name" doc:"Name." example:"Filter inspection"`
	Questions []QuestionRecord `json:"questions" nullable:"false" doc:"The questions, in order."`
	Retired   bool             `json:"retired" doc:"True if the form stays on its work orders and new ones cannot have it."`
	CreatedAt Time             `json:"created_at" format:"date-time" doc:"When it was created." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt Time             `json:"changed_at" format:"date-time" doc:"When it last changed." example:"2026-03-02T12:15:30.000Z"`
}

// QuestionRecord is a question of a form.
type QuestionRecord struct {
	ID       string                 `json:"id" doc:"Identifier." example:"qst_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Label    string                 `json:"label" doc:"The question." example:"Filter state"`
	Type     QuestionType           `json:"type" enum:"single_choice,multiple_choice,integer,decimal,text" doc:"What values answer it." example:"single_choice"`
	Required bool                   `json:"required" doc:"Whether it must be answered to complete."`
	Options  []QuestionOptionRecord `json:"options" nullable:"false" doc:"The choices; empty if the question is not a choice."`
}

// QuestionOptionRecord is a choice of a question.
type QuestionOptionRecord struct {
	ID    string `json:"id" doc:"Identifier." example:"opt_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Label string `json:"label" doc:"The choice." example:"OK"`
}

// AnswersRecord is a work order's form with its answers.
type AnswersRecord struct {
	WorkOrderID string           `json:"work_order_id" doc:"The work order." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Form        *AnswersForm     `json:"form" doc:"The form, or null if the work order has none."`
	Questions   []AnsweredRecord `json:"questions" nullable:"false" doc:"The form's questions in order, with their answers."`
}

// AnswersForm names a form.
type AnswersForm struct {
	ID   string `json:"id" doc:"Identifier." example:"frm_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Name string `json:"name" doc:"Name." example:"Filter inspection"`
}

// AnsweredRecord is a question with its answer.
type AnsweredRecord struct {
	QuestionRecord
	Value      any     `json:"value" doc:"The answer, in the form of the question's type, or null."`
	AnsweredAt *Time   `json:"answered_at" format:"date-time" doc:"When it was answered, or null." example:"2026-03-02T12:15:30.000Z"`
	AnsweredBy *string `json:"answered_by" doc:"Identity id of the one who answered, or null." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3td"`
}

// PersonRecord is a person of the organization.
type PersonRecord struct {
	ID        string   `json:"id" doc:"Identity id." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Name      string   `json:"name" doc:"Name." example:"Ann Field"`
	Email     string   `json:"email" doc:"E-mail address." example:"ann@example.com"`
	Phone     *string  `json:"phone" doc:"Phone number, or null." example:"+12025550101"`
	Active    bool     `json:"active" doc:"False for a person who was deactivated: who cannot act, be assigned or be notified."`
	Teams     []string `json:"teams" nullable:"false" uniqueItems:"true" doc:"Identity ids of the person's teams."`
	CreatedAt Time     `json:"created_at" format:"date-time" doc:"When the person was added." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt Time     `json:"changed_at" format:"date-time" doc:"When the person's record last changed." example:"2026-03-02T12:15:30.000Z"`
}

// TeamRecord is a team with its members.
type TeamRecord struct {
	ID        string   `json:"id" doc:"Identity id." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Name      string   `json:"name" doc:"Name." example:"Electricians"`
	Active    bool     `json:"active" doc:"False for a team without an active member, which cannot be assigned."`
	Members   []string `json:"members" nullable:"false" uniqueItems:"true" doc:"Identity ids of the members."`
	CreatedAt Time     `json:"created_at" format:"date-time" doc:"When the team was created." example:"2026-03-02T12:15:30.000Z"`
	ChangedAt Time     `json:"changed_at" format:"date-time" doc:"When the team last changed." example:"2026-03-02T12:15:30.000Z"`
}
