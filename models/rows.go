package models

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
)

// TextArray is a column of type text[].
type TextArray []string

// Value writes the array in Postgres's text form.
func (a TextArray) Value() (driver.Value, error) {
	elements := make([]string, len(a))
	for i, s := range a {
		elements[i] = `"` + elementEscapes.Replace(s) + `"`
	}
	return "{" + strings.Join(elements, ",") + "}", nil
}

// elementEscapes escape an element of an array in quotes.
var elementEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Scan reads the array in Postgres's text form. The arrays hold no nulls.
func (a *TextArray) Scan(src any) error {
	text, ok := src.(string)
	if !ok || len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return fmt.Errorf("cannot read text[] from a %T", src)
	}
	*a = TextArray{}
	text = text[1 : len(text)-1]
	for text != "" {
		var element string
		element, text = cutArrayElement(text)
		*a = append(*a, element)
	}
	return nil
}

// cutArrayElement cuts the first element and its comma off an array's text,
// undoing quotes and backslashes.
func cutArrayElement(text string) (element, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return b.String(), text[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// JSON is a jsonb column that holds an object.
type JSON map[string]any

// Value writes the object as JSON text.
func (j JSON) Value() (driver.Value, error) {
	b, err := json.Marshal(map[string]any(j))
	if err != nil {
		return nil, fmt.Errorf("encode a jsonb column: %w", err)
	}
	return string(b), nil
}

// Scan reads the object from JSON text.
func (j *JSON) Scan(src any) error {
	switch text := src.(type) {
	case string:
		return json.Unmarshal([]byte(text), (*map[string]any)(j))
	case []byte:
		return json.Unmarshal(text, (*map[string]any)(j))
	default:
		return fmt.Errorf("cannot read jsonb from a %T", src)
	}
}

// Organization is a row of organizations. Its name is in its identity.
type Organization struct {
	ID        string `gorm:"primaryKey"`
	Key       string
	ReadOnly  bool
	Suspended bool
	CreatedAt Time
}

// Plan is the plan an organization pays for.
type Plan struct {
	OrganizationID   string `gorm:"primaryKey"`
	Name             string
	API              bool
	ManualWorkOrders bool
	CallsPerMinute   int
	Integrations     int
}

// IdentityKind is the kind of an identity.
type IdentityKind string

// The kinds of identity.
const (
	KindPerson       IdentityKind = "person"
	KindTeam         IdentityKind = "team"
	KindOrganization IdentityKind = "organization"
	KindIntegration  IdentityKind = "integration"
)

// Identity is a person, a team, an organization or an integration.
type Identity struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Kind           IdentityKind
	Searched
	CreatedAt Time
	ChangedAt Time
	// DeletedAt is when a team was deleted; an integration has its own.
	DeletedAt *Time
}

// Person is the part of a person that is not in its identity.
type Person struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Email          string
	// FoldedEmail is unique in the organization.
	FoldedEmail string `gorm:"->:false;<-" db:"-"`
	Words       Words  `gorm:"->:false;<-" db:"-"`
	Phone       *string
	// PasswordHash and PasswordPrivate change by storePassword alone: a row that was read before
	// must not bring back a password that ended.
	PasswordHash *string `gorm:"<-:create"`
	// PasswordPrivate is whether no one below administrator saw the link that set the password.
	PasswordPrivate          bool `gorm:"<-:create"`
	Admin                    bool
	OrganizationDefinitionID *string
	// DeactivatedAt is when the person lost access, nil for people who have it.
	DeactivatedAt *Time
	// TimeZone is a name of the time zone database, nil for UTC.
	TimeZone *string
	// Theme is nil for the device's.
	Theme *Theme
}

// TableName returns people.
func (*Person) TableName() string { return "people" }

// Fold sets the columns that follow from the e-mail address.
func (p *Person) Fold() {
	p.FoldedEmail, p.Words = Fold(p.Email), WordsOf("", nil, p.Email)
}

// FoldedColumns names the columns that Fold sets, and those from which they follow.
func (*Person) FoldedColumns() (columns, from []string) {
	return []string{"folded_email", "words"}, []string{"email"}
}

// Integration is the part of an integration that is not in its identity.
type Integration struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	ClientID       string
	SecretHash     []byte
	// PreviousSecretHash is of the secret before the last renewal, which gets tokens until PreviousSecretUntil; both
	// are nil if it ended at once.
	PreviousSecretHash       []byte
	PreviousSecretUntil      *Time
	Scopes                   TextArray
	OrganizationDefinitionID *string
	Enabled                  bool
	// DisabledByService is set by operators; the organization cannot lift it.
	DisabledByService bool
	DeletedAt         *Time
	// Owners are the people who know its secrets: its creator, unless that was an operator or
	// an import, and those whom an administrator named.
	Owners TextArray
}

// TeamMember is one member of a team.
type TeamMember struct {
	TeamID         string `gorm:"primaryKey"`
	MemberID       string `gorm:"primaryKey"`
	OrganizationID string
}

// ServiceCompany lets CompanyID be assigned work orders of CustomerID.
type ServiceCompany struct {
	CustomerID string `gorm:"primaryKey"`
	CompanyID  string `gorm:"primaryKey"`
}

// EndedRelation is a former service company, from which housekeeping takes work orders back.
type EndedRelation struct {
	CompanyID  string `gorm:"primaryKey"`
	CustomerID string `gorm:"primaryKey"`
	ActorID    string
	EndedAt    Time
}

// ImportKey is the key that an import file gave to an entity.
type ImportKey struct {
	OrganizationID string `gorm:"primaryKey"`
	Key            string `gorm:"primaryKey"`
	Kind           string
	ID             string
}

// NodeKind is a level of the inventory.
type NodeKind string

// The kinds of inventory node.
const (
	NodeLocation     NodeKind = "location"
	NodeSystem       NodeKind = "system"
	NodeEquipment    NodeKind = "equipment"
	NodeSubEquipment NodeKind = "sub_equipment"
)

// NodePrefixes are the id prefixes of the kinds of node.
var NodePrefixes = map[NodeKind]IDPrefix{
	NodeLocation:     PrefixLocation,
	NodeSystem:       PrefixSystem,
	NodeEquipment:    PrefixEquipment,
	NodeSubEquipment: PrefixSubEquipment,
}

// InventoryNode is a location, system, equipment or sub-equipment.
type InventoryNode struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Kind           NodeKind
	ParentID       *string
	Name           string
	SortKey        string `gorm:"->:false;<-" db:"-"`
	Description    *string
	ExternalID     *string
	Words          Words `gorm:"->:false;<-" db:"-"`
	CreatedAt      Time
	ChangedAt      Time
	// RetiredAt is set while the node cannot be chosen. Its records stay.
	RetiredAt *Time
}

// Fold sets the columns that follow from the name and the code.
func (n *InventoryNode) Fold() {
	n.SortKey, n.Words = SortKey(n.Name), WordsOf(n.OrganizationID, n.ExternalID, n.Name)
}

// FoldedColumns names the columns that Fold sets, and those from which they follow.
func (*InventoryNode) FoldedColumns() (columns, from []string) {
	return []string{"sort_key", "words"}, []string{"name", "external_id"}
}

// Named is a part of models whose lists are sorted by name.
type Named struct {
	Name    string
	SortKey string `gorm:"->:false;<-" db:"-"`
}

// Fold sets the column that follows from the name.
func (n *Named) Fold() { n.SortKey = SortKey(n.Name) }

// FoldedColumns names the column that Fold sets, and that from which it follows.
func (*Named) FoldedColumns() (columns, from []string) { return []string{"sort_key"}, []string{"name"} }

// Searched is a part of models whose lists are sorted by name and searched by its words.
type Searched struct {
	Name    string
	SortKey string `gorm:"->:false;<-" db:"-"`
	Words   Words  `gorm:"->:false;<-" db:"-"`
}

// Fold sets the columns that follow from the name.
func (s *Searched) Fold() { s.SortKey, s.Words = SortKey(s.Name), WordsOf("", nil, s.Name) }

// FoldedColumns names the columns that Fold sets, and those from which they follow.
func (*Searched) FoldedColumns() (columns, from []string) {
	return []string{"sort_key", "words"}, []string{"name"}
}

// PermissionDefinition is a named set of grants on nodes.
type PermissionDefinition struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Named
	AppliesBelow     bool
	InventoryManager bool
	Retired          bool
	Grants           TextArray
}

// OrganizationPermissionDefinition is a named set of organization-wide grants.
type OrganizationPermissionDefinition struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Named
	Retired bool
	Grants  TextArray
}

// Assignment gives an identity a permission definition on a node.
type Assignment struct {
	NodeID         string `gorm:"primaryKey"`
	IdentityID     string `gorm:"primaryKey"`
	DefinitionID   string
	OrganizationID string
}

// Form is a named list of questions.
type Form struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Searched
	CreatedAt Time
	ChangedAt Time
	Retired   bool
}

// QuestionType determines the values that answer a question.
type QuestionType string

// The question types.
const (
	QuestionSingleChoice   QuestionType = "single_choice"
	QuestionMultipleChoice QuestionType = "multiple_choice"
	QuestionInteger        QuestionType = "integer"
	QuestionDecimal        QuestionType = "decimal"
	QuestionText           QuestionType = "text"
)

// HasOptions reports whether the answers are choices.
func (t QuestionType) HasOptions() bool {
	return t == QuestionSingleChoice || t == QuestionMultipleChoice
}

// Known reports whether there is such a type.
func (t QuestionType) Known() bool {
	return t.HasOptions() || t == QuestionInteger || t == QuestionDecimal || t == QuestionText
}

// Question is one question of a form.
type Question struct {
	ID       string `gorm:"primaryKey"`
	FormID   string
	Position int
	Label    string
	Type     QuestionType
	Required bool
	Retired  bool
}

// QuestionOption is a choice of a question.
type QuestionOption struct {
	ID         string `gorm:"primaryKey"`
	QuestionID string
	Position   int
	Label      string
}

// OneLine returns the label as one line of text, as which lists of choices are entered.
func (o QuestionOption) OneLine() string { return strings.Join(strings.Fields(o.Label), " ") }

// Feedback is a row of feedback.
type Feedback struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	InventoryID    string
	Subject        string
	Description    *string
	ExternalID     *string
	// ExternalKey is the external id without white space around it, unique in the organization.
	ExternalKey *string `gorm:"->:false;<-" db:"-"`
	Words       Words   `gorm:"->:false;<-" db:"-"`
	Status      FeedbackStatus
	CreatedBy   string
	CreatedAt   Time
	ChangedAt   Time
	ResolvedAt  *Time
}

// Fold sets the columns that follow from the subject and the external id.
func (f *Feedback) Fold() {
	f.ExternalKey, f.Words = ExternalKey(f.ExternalID), WordsOf(f.OrganizationID, f.ExternalID, f.Subject)
}

// FoldedColumns names the columns that Fold sets, and those from which they follow.
func (*Feedback) FoldedColumns() (columns, from []string) {
	return []string{"external_key", "words"}, []string{"subject", "external_id"}
}

// ExternalKey is by what the external ids of feedback are compared: without white space around them, in case.
func ExternalKey(externalID *string) *string {
	if externalID == nil {
		return nil
	}
	key := Trim(*externalID)
	return &key
}

// TableName returns feedback.
func (*Feedback) TableName() string { return "feedback" }

// Comment is a row of comments.
type Comment struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	RecordID       string
	// Text is nil if an administrator removed it.
	Text      *string
	CreatedBy string
	CreatedAt Time
}

// LogEntry is a row of the organization's log: a Log Record and, if it has Changes, an
// entry of a record's history.
type LogEntry struct {
	ID             int64 `gorm:"primaryKey"`
	OrganizationID string
	RecordID       string
	ActorID        *string // nil for the service's operators
	// ActorName is the name at the time.
	ActorName string
	Action    string
	// Changes is {"field": {"from": …, "to": …}}, nil for what is no change of a record.
	Changes   *JSON
	CreatedAt Time
}

// TableName returns log.
func (LogEntry) TableName() string { return "log" }

// Webhook is a webhook address of an integration and the event types it subscribed to.
type Webhook struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	IntegrationID  string
	Slot           int
	URL            string
	Events         TextArray
	SecretSealed   []byte
	// PreviousSecret and the OlderSecret before it are sealed too. Each signs until its time.
	PreviousSecret      []byte
	PreviousSecretUntil *Time
	OlderSecret         []byte
	OlderSecretUntil    *Time
	Enabled             bool
	// OffReason and OffAt are set while the address is off.
	OffReason *string
	OffAt     *Time
	// OffBy is the person who turned it off, nil for the service and its operators.
	OffBy *string
	// EnabledSince is when it was created or last turned on.
	EnabledSince Time
	// HeldBefore is the time before which deliveries were queued that are held although it is on.
	HeldBefore Time
	CreatedAt  Time
}

// StoredResponse is the response to a write with an idempotency key, stored in the
// write's transaction.
type StoredResponse struct {
	// Digest identifies the call, ResponseSlot of CreatedAt is Slot.
	Digest      []byte `gorm:"primaryKey"`
	Slot        int    `gorm:"primaryKey"`
	Status      int
	CreatedAt   Time
	Fingerprint []byte
	RecordID    string
	// Readable is whether the caller could read the record at the time of the write.
	Readable bool
	Body     []byte
}

// ResponseSlot is the partition of the responses of the time's day in UTC. Of the three
// slots, the one of the next day is empty.
func ResponseSlot(at Time) int { return int(at.Unix() / (24 * 60 * 60) % 3) }
