package imports

import (
	"slices"

	"millwright/models"
	"millwright/service/inventory"
)

// readImportFile decodes a file and makes the checks that need no database. The
// error is a *FileError.
func readImportFile(text []byte) (*importFile, error) {
	file := &importFile{kinds: map[string]string{}, kindsOfNode: map[string]models.NodeKind{}}
	problems := &FileError{}
	parseImportFile(text, file, problems)
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	file.collectKeys(problems)
	file.checkNames(problems)
	file.checkLimits(problems)
	return file, problems.orNil()
}

// collectKeys records what every key names. Keys are unique in a file.
func (f *importFile) collectKeys(problems *FileError) {
	add := func(key, kind string) {
		switch other, taken := f.kinds[key]; {
		case models.IsBlank(key):
			problems.add("a %s has no key", kind)
		case taken:
			problems.add("the key %q names both a %s and a %s", key, other, kind)
		default:
			f.kinds[key] = kind
		}
	}
	add(f.Organization.Key, keyOrganization)
	for _, d := range f.PermissionDefinitions {
		add(d.Key, keyDefinition)
	}
	for _, d := range f.OrganizationDefinitions {
		add(d.Key, keyOrganizationDefinition)
	}
	for _, p := range f.People {
		add(p.Key, keyPerson)
	}
	for _, t := range f.Teams {
		add(t.Key, keyTeam)
	}
	var addNodes func(nodes []importNode, parent string)
	addNodes = func(nodes []importNode, parent string) {
		for _, n := range nodes {
			add(n.Key, keyNode)
			f.kindsOfNode[n.Key] = models.NodeKind(n.Kind)
			f.nodes = append(f.nodes, importChild{n, parent})
			addNodes(n.Children, n.Key)
		}
	}
	addNodes(f.Inventory, "")
	for _, form := range f.Forms {
		add(form.Key, keyForm)
		for _, q := range form.Questions {
			add(q.Key, keyQuestion)
			for _, o := range q.Options {
				add(o.Key, keyOption)
			}
		}
	}
	for _, i := range f.Integrations {
		add(i.Key, keyIntegration)
		for _, w := range i.Webhooks {
			add(w.Key, keyWebhook)
		}
	}
}

// checkNames reports unknown grants, scopes, event types, kinds of node and question types.
func (f *importFile) checkNames(problems *FileError) {
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

func (f *importFile) checkNodes(problems *FileError) {
	for _, n := range f.nodes {
		if _, known := models.NodePrefixes[models.NodeKind(n.Kind)]; !known {
			problems.add("inventory node %q: kind is location, system, equipment or sub_equipment, not %q", n.Key, n.Kind)
			continue
		}
		if !inventory.Nests(f.kindsOfNode[n.parent], models.NodeKind(n.Kind)) {
			where := "at the top level"
			if n.parent != "" {
				where = "below a " + string(f.kindsOfNode[n.parent])
			}
			problems.add("inventory node %q: a %s cannot be %s", n.Key, n.Kind, where)
		}
	}
}

func (f *importFile) checkQuestion(q importQuestion, problems *FileError) {
	kind := models.QuestionType(q.Type)
	if !kind.Known() {
		problems.add("question %q: type is single_choice, multiple_choice, integer, decimal or text, not %q", q.Key, q.Type)
		return
	}
	if kind.HasOptions() != (len(q.Options) > 0) {
		problems.add("question %q: a choice has options, other types have none", q.Key)
	}
}
