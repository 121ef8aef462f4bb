package service

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"millwright/models"
)

// The form of an import file (contract, import). A pointer is nil, and a slice
// too, where the file leaves the field out: then it stays as it was.
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
	nodes                   []importPlacedNode         // the inventory, parents first
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

// importPlacedNode is a node with the key of its parent, "" at the top.
type importPlacedNode struct {
	importNode
	parent string
}

type importForm struct {
	Key       string           `yaml:"key"`
	Name      *string          `yaml:"name"`
	Questions []importQuestion `yaml:"questions"`
}

type importQuestion struct {
	Key      string         `yaml:"key"`
	Label    *string        `yaml:"label"`
	Type     string         `yaml:"type"`
	Required *bool          `yaml:"required"`
	Options  []importOption `yaml:"options"`
}

type importOption struct {
	Key   string  `yaml:"key"`
	Label *string `yaml:"label"`
}

type importAssignment struct {
	Node       string `yaml:"node"`
	Identity   string `yaml:"identity"`
	Definition string `yaml:"definition"`
}

type importServiceCompany struct {
	Key string `yaml:"key"`
}

type importIntegration struct {
	Key                    string          `yaml:"key"`
	Name                   *string         `yaml:"name"`
	Scopes                 []string        `yaml:"scopes"`
	OrganizationDefinition *string         `yaml:"organization_definition"`
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

// The kinds of key in a file.
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

// ImportError says everything that is wrong with an import file, a sentence each.
type ImportError struct{ Problems []string }

// Error returns the problems, a line each.
func (e *ImportError) Error() string {
	return "the file cannot be imported:\n  " + strings.Join(e.Problems, "\n  ")
}

func (e *ImportError) add(format string, args ...any) {
	e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
}

func (e *ImportError) orNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// readImportFile decodes a file and checks what can be checked without the
// database. The error is an *ImportError.
func readImportFile(text []byte) (*importFile, error) {
	file := &importFile{kinds: map[string]string{}, kindsOfNode: map[string]models.NodeKind{}}
	problems := &ImportError{}
	if problem := checkImportSize(text); problem != "" {
		problems.add("%s", problem)
		return nil, problems
	}
	if err := yaml.UnmarshalWithOptions(text, file, yaml.Strict()); err != nil {
		problems.add("%s", yaml.FormatError(err, false, false))
		return nil, problems
	}
	file.collectKeys(problems)
	file.checkNames(problems)
	return file, problems.orNil()
}

// The bounds of an import file. Decoding takes some hundred times its size.
const (
	maxImportFile = 8 << 20
	// maxImportValues bounds the values of a file whose aliases are written out:
	// a few lines of aliases of aliases stand for billions.
	maxImportValues = 500_000
)

// checkImportSize says what makes a file too large to decode, "" when nothing does.
func checkImportSize(text []byte) string {
	if len(text) > maxImportFile {
		return fmt.Sprintf("it is larger than %d MiB", maxImportFile>>20)
	}
	if !bytes.ContainsRune(text, '*') {
		return "" // without an alias it is as large as it looks
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return "" // decoding says what is wrong
	}
	anchors := map[string]int{}
	values := 0
	for _, doc := range file.Docs {
		values += valuesOf(doc.Body, anchors)
	}
	if values > maxImportValues {
		return fmt.Sprintf("with its aliases written out it has more than %d values", maxImportValues)
	}
	return ""
}

// valuesOf counts the values of a node with its aliases written out, up to one
// more than maxImportValues. It learns how many each anchor stands for.
func valuesOf(node ast.Node, anchors map[string]int) int {
	count := 1
	add := func(nodes ...ast.Node) {
		for _, n := range nodes {
			count = min(count+valuesOf(n, anchors), maxImportValues+1)
		}
	}
	switch n := node.(type) {
	case nil:
		return 0
	case *ast.AliasNode:
		return anchors[n.Value.GetToken().Value]
	case *ast.AnchorNode:
		add(n.Value)
		anchors[n.Name.GetToken().Value] = count
	case *ast.TagNode:
		add(n.Value)
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		add(n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	}
	return count
}

// collectKeys learns what every key names; keys are unique in a file.
func (f *importFile) collectKeys(problems *ImportError) {
	learn := func(key, kind string) {
		switch other, taken := f.kinds[key]; {
		case key == "":
			problems.add("a %s has no key", kind)
		case taken:
			problems.add("the key %q names a %s and a %s", key, other, kind)
		default:
			f.kinds[key] = kind
		}
	}
	learn(f.Organization.Key, keyOrganization)
	for _, d := range f.PermissionDefinitions {
		learn(d.Key, keyDefinition)
	}
	for _, d := range f.OrganizationDefinitions {
		learn(d.Key, keyOrganizationDefinition)
	}
	for _, p := range f.People {
		learn(p.Key, keyPerson)
	}
	for _, t := range f.Teams {
		learn(t.Key, keyTeam)
	}
	var place func(nodes []importNode, parent string)
	place = func(nodes []importNode, parent string) {
		for _, n := range nodes {
			learn(n.Key, keyNode)
			f.kindsOfNode[n.Key] = models.NodeKind(n.Kind)
			f.nodes = append(f.nodes, importPlacedNode{n, parent})
			place(n.Children, n.Key)
		}
	}
	place(f.Inventory, "")
	for _, form := range f.Forms {
		learn(form.Key, keyForm)
		for _, q := range form.Questions {
			learn(q.Key, keyQuestion)
			for _, o := range q.Options {
				learn(o.Key, keyOption)
			}
		}
	}
	for _, i := range f.Integrations {
		learn(i.Key, keyIntegration)
		for _, w := range i.Webhooks {
			learn(w.Key, keyWebhook)
		}
	}
}

// checkNames refuses names of the file that nothing has: grants, scopes, events, kinds, types.
func (f *importFile) checkNames(problems *ImportError) {
	for _, d := range f.PermissionDefinitions {
		for _, g := range d.Grants {
			if !slices.Contains(models.AllGrants, models.Grant(g)) {
				problems.add("permission definition %q: there is no grant %q", d.Key, g)
			}
		}
	}
	for _, d := range f.OrganizationDefinitions {
		if d.AppliesBelow != nil || d.InventoryManager != nil {
			problems.add("organization permission definition %q: applies_below and inventory_manager belong to permission definitions", d.Key)
		}
		for _, g := range d.Grants {
			if !slices.Contains(models.AllOrganizationGrants, models.OrganizationGrant(g)) {
				problems.add("organization permission definition %q: there is no grant %q", d.Key, g)
			}
		}
	}
	f.checkNodes(problems)
	for _, form := range f.Forms {
		for _, q := range form.Questions {
			f.checkQuestion(q, problems)
		}
	}
	for _, i := range f.Integrations {
		if _, unknown := models.ScopesOf(i.Scopes); unknown != "" {
			problems.add("integration %q: there is no scope %q", i.Key, unknown)
		}
		for _, w := range i.Webhooks {
			for _, e := range w.Events {
				if !models.EventType(e).Known() {
					problems.add("webhook %q: there is no event type %q", w.Key, e)
				}
			}
		}
	}
}

func (f *importFile) checkNodes(problems *ImportError) {
	for _, n := range f.nodes {
		if _, known := models.NodePrefixes[models.NodeKind(n.Kind)]; !known {
			problems.add("inventory node %q: kind is location, system, equipment or sub_equipment, not %q", n.Key, n.Kind)
			continue
		}
		if !nests(f.kindsOfNode[n.parent], models.NodeKind(n.Kind)) {
			where := "at the top"
			if n.parent != "" {
				where = "below a " + string(f.kindsOfNode[n.parent])
			}
			problems.add("inventory node %q: a %s cannot stand %s", n.Key, n.Kind, where)
		}
	}
}

func (f *importFile) checkQuestion(q importQuestion, problems *ImportError) {
	choice := false
	switch models.QuestionType(q.Type) {
	case models.QuestionSingleChoice, models.QuestionMultipleChoice:
		choice = true
	case models.QuestionInteger, models.QuestionDecimal, models.QuestionText:
	default:
		problems.add("question %q: type is single_choice, multiple_choice, integer, decimal or text, not %q", q.Key, q.Type)
		return
	}
	if choice != (len(q.Options) > 0) {
		problems.add("question %q: choices, and only they, have options", q.Key)
	}
}

// nests reports whether a node of the kind may stand below one of the parent
// kind ("" for the top); the schema's trigger holds the same rule.
func nests(parent, kind models.NodeKind) bool {
	switch kind {
	case models.NodeLocation:
		return parent == "" || parent == models.NodeLocation
	case models.NodeSystem, models.NodeEquipment:
		return parent == models.NodeLocation || parent == models.NodeSystem
	case models.NodeSubEquipment:
		return parent == models.NodeEquipment
	}
	return false
}
