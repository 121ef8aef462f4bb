package imports

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/models"
)

// importFile is the content of an import file (docs/import.md). A nil
// pointer or slice is a field that the file leaves out: it keeps its value.
type importFile struct {
	Organization            importOrganization         `yaml:"organization"`
	PermissionDefinitions   []importDefinition         `yaml:"permission_definitions"`
	OrganizationDefinitions []importDefinition         `yaml:"organization_permission_definitions"`
	People                  []importPerson             `yaml:"people"`
	Teams                   []importTeam               `yaml:"teams"`
	Inventory               []importNode               `yaml:"inventory"`
	Forms                   []importForm               `yaml:"forms"`
	Assignments             []importAssignment         `yaml:"assignments"`
	ServiceCompanies        []importServiceCompany     `yaml:"service_companies"`
	Integrations            []importIntegration        `yaml:"integrations"`
	kinds                   map[string]string          // what each key names
	nodes                   []importChild              // the inventory, parents first
	kindsOfNode             map[string]models.NodeKind // by key
}

type importOrganization struct {
	Key       string      `yaml:"key"`
	Name      *string     `yaml:"name"`
	Plan      *importPlan `yaml:"plan"`
	ReadOnly  *bool       `yaml:"read_only"`
	Suspended *bool       `yaml:"suspended"`
}

type importPlan struct {
	Name             *string `yaml:"name"`
	API              *bool   `yaml:"api"`
	ManualWorkOrders *bool   `yaml:"manual_work_orders"`
	CallsPerMinute   *int    `yaml:"calls_per_minute"`
	Integrations     *int    `yaml:"integrations"`
}

type importDefinition struct {
	Key              string   `yaml:"key"`
	Name             *string  `yaml:"name"`
	AppliesBelow     *bool    `yaml:"applies_below"`
	InventoryManager *bool    `yaml:"inventory_manager"`
	Grants           []string `yaml:"grants"`
	Retired          *bool    `yaml:"retired"`
}

type importPerson struct {
	Key                    string  `yaml:"key"`
	Name                   *string `yaml:"name"`
	Email                  *string `yaml:"email"`
	Phone                  *string `yaml:"phone"`
	Password               *string `yaml:"password"`
	Admin                  *bool   `yaml:"admin"`
	OrganizationDefinition *string `yaml:"organization_definition"`
}

type importTeam struct {
	Key     string   `yaml:"key"`
	Name    *string  `yaml:"name"`
	Members []string `yaml:"members"`
}

type importNode struct {
	Key         string       `yaml:"key"`
	Kind        string       `yaml:"kind"`
	Name        *string      `yaml:"name"`
	Description *string      `yaml:"description"`
	ExternalID  *string      `yaml:"external_id"`
	Children    []importNode `yaml:"children"`
}

// importChild is a node with the key of its parent, "" at the top level.
type importChild struct {
	importNode
	parent string
}

type importForm struct {
	Key       string           `yaml:"key"`
	Name      *string          `yaml:"name"`
	Retired   *bool            `yaml:"retired"`
	Questions []importQuestion `yaml:"questions"`
}

type importQuestion struct {
	Key      string         `yaml:"key"`
	Label    *string        `yaml:"label"`
	Type     string         `yaml:"type"`
	Required *bool          `yaml:"required"`
	Retired  *bool          `yaml:"retired"`
	Options  []importOption `yaml:"options"`
}

type importOption struct {
	Key   string  `yaml:"key"`
	Label *string `yaml:"label"`
}

type importAssignment struct {
	Node       importText `yaml:"node"`
	Identity   string     `yaml:"identity"`
	Definition string     `yaml:"definition"`
}

// importText is a string of a file with its line.
type importText struct {
	text string
	line int
}

// UnmarshalYAML decodes the text.
func (t *importText) UnmarshalYAML(value *yaml.Node) error {
	t.line = value.Line
	return value.Decode(&t.text)
}

type importServiceCompany struct {
	Key string `yaml:"key"`
}

type importIntegration struct {
	Key                    string          `yaml:"key"`
	Name                   *string         `yaml:"name"`
	Scopes                 []string        `yaml:"scopes"`
	OrganizationDefinition *string         `yaml:"organization_definition"`
	Owners                 []string        `yaml:"owners"`
	ClientID               *string         `yaml:"client_id"`
	ClientSecret           *string         `yaml:"client_secret"`
	Webhooks               []importWebhook `yaml:"webhooks"`
}

type importWebhook struct {
	Key    string   `yaml:"key"`
	URL    *string  `yaml:"url"`
	Events []string `yaml:"events"`
	Secret *string  `yaml:"secret"`
}

// What a key of a file can name.
const (
	keyOrganization           = "organization"
	keyDefinition             = "permission definition"
	keyOrganizationDefinition = "organization permission definition"
	keyPerson                 = "person"
	keyTeam                   = "team"
	keyNode                   = "inventory node"
	keyForm                   = "form"
	keyQuestion               = "question"
	keyOption                 = "option"
	keyIntegration            = "integration"
	keyWebhook                = "webhook"
)

// FileError lists everything that is wrong with an import file.
type FileError struct{ Problems []string }

// Error returns the problems, one per line.
func (e *FileError) Error() string {
	return "the file cannot be imported:\n  " + strings.Join(e.Problems, "\n  ")
}

func (e *FileError) add(format string, args ...any) {
	e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
}

func (e *FileError) orNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
