package people

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/store"
)

// DefinitionFields are what an administrator enters about a permission definition.
type DefinitionFields struct {
	Name   string           `json:"name"`
	Grants models.TextArray `json:"grants"`
	// AppliesBelow and InventoryManager belong to definitions on nodes.
	AppliesBelow     bool `json:"applies_below"`
	InventoryManager bool `json:"inventory_manager"`
	Retired          bool `json:"retired"`
}

// DefinitionState is what forms about a permission definition are filled from.
type DefinitionState struct {
	ID string `json:"id"`
	DefinitionFields
}

// check returns the errors in the fields. Its grants are sorted as known lists them.
func (in *DefinitionFields) check(known []string) []models.FieldError {
	in.Name = models.Trim(in.Name)
	fields := store.CheckName(in.Name)
	for _, grant := range in.Grants {
		if !slices.Contains(known, grant) {
			return append(fields, models.FieldError{Pointer: "/grants", Code: "unknown", Detail: "There is no such permission."})
		}
	}
	in.Grants = slices.DeleteFunc(slices.Clone(models.TextArray(known)), func(g string) bool { return !slices.Contains(in.Grants, g) })
	return fields
}

// SaveDefinition changes a permission definition of the organization, or creates one if the id is empty, and returns its
// id. With onNodes it is a role on nodes, otherwise one in the organization. Everyone who has it gets its permissions at
// once: people who gain some that hold for the organization are signed out and lose the ways to sign in that others may
// share, as after an import. Only administrators may. Errors: not_found, permission_denied, validation_failed (/name,
// /grants), *FormStaleError, unavailable.
func (s *People) SaveDefinition(ctx context.Context, actor store.Actor, key store.Key, onNodes bool, id string, in DefinitionFields) (string, error) {
	var saved string
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		o, err := lockOrganization(t, actor, actor.OrganizationID)
		if err == nil && !o.Admin {
			err = ErrChangesNoRoles()
		}
		if err != nil {
			return err
		}
		before, action, err := lockDefinition(t, o, onNodes, id)
		if err != nil {
			return err
		}
		known := store.TextsOf(models.AllOrganizationGrants)
		if onNodes {
			known = store.TextsOf(models.AllGrants)
		}
		if err := store.Invalid(in.check(known)); err != nil {
			return err
		}
		if slices.Equal(slices.Sorted(slices.Values(before.Grants)), slices.Sorted(slices.Values(in.Grants))) {
			in.Grants = before.Grants // as the import has them
		}
		if saved = id; id == "" {
			saved, err = t.NewID(models.PrefixDefinition)
		} else {
			err = t.Matches(ctx, key, DefinitionState{id, before}, o.ID, id)
		}
		if err != nil {
			return err
		}
		if err := in.save(t, actor, o, onNodes, saved, before, action); err != nil || onNodes || id == "" || slices.Equal(before.Grants, in.Grants) {
			return err
		}
		return changeHolders(t, actor, o, id, slices.ContainsFunc(in.Grants, func(g string) bool { return !slices.Contains(before.Grants, g) }))
	})
	return saved, err
}

// save writes the definition and its Log Record. The action is another one if the definition is retired or brought back.
func (in *DefinitionFields) save(t *store.Tx, actor store.Actor, o lockedOrganization, onNodes bool, id string, before DefinitionFields, action string) error {
	action = cmp.Or(inventory.Retirement("definition.", before.Retired, in.Retired, false), action)
	var row any = &models.OrganizationPermissionDefinition{ID: id, OrganizationID: o.ID, Named: models.Named{Name: in.Name}, Retired: in.Retired, Grants: in.Grants}
	if onNodes {
		row = &models.PermissionDefinition{ID: id, OrganizationID: o.ID, Named: models.Named{Name: in.Name}, Retired: in.Retired, Grants: in.Grants,
			AppliesBelow: in.AppliesBelow, InventoryManager: in.InventoryManager}
	}
	if err := t.Upsert(row); err != nil {
		return err
	}
	return t.Log(actor, o.ID, action, id)
}

// lockDefinition returns a permission definition of the organization, locked until the transaction ends, and the action
// of its change; for the id "" an empty one. Errors: not_found, validation_failed (/name: there are too many).
func lockDefinition(t *store.Tx, o lockedOrganization, onNodes bool, id string) (before DefinitionFields, action string, err error) {
	table, columns := "organization_permission_definitions", "name, grants, retired"
	if onNodes {
		table, columns = "permission_definitions", columns+", applies_below, inventory_manager"
	}
	if id != "" {
		before, err = store.ScanOne[DefinitionFields](t, models.NotFound(), `SELECT `+columns+` FROM `+table+` WHERE id = ? AND organization_id = ? FOR NO KEY UPDATE`, id, o.ID)
		return before, "definition.changed", err
	}
	n, err := store.ScanOne[int](t, nil, `SELECT count(*) FROM `+table+` WHERE organization_id = ?`, o.ID)
	if err == nil && n >= inventory.MaxChoices {
		err = models.Invalid(models.FieldError{Pointer: "/name", Code: "too_many", Detail: fmt.Sprintf("An organization has at most %d roles. Change a retired one.", inventory.MaxChoices)})
	}
	return before, "definition.created", err
}

// changeHolders does what follows for those who have the organization permission definition, whose permissions change.
func changeHolders(t *store.Tx, actor store.Actor, o lockedOrganization, id string, wider bool) error {
	held, err := store.ScanAll[models.Person](t, `SELECT id, admin FROM people WHERE organization_definition_id = ? ORDER BY id`, id)
	if err != nil {
		return err
	}
	var holders, gaining []string
	for _, p := range held {
		if holders = append(holders, p.ID); wider && !p.Admin {
			gaining = append(gaining, p.ID)
		}
	}
	if len(gaining) > 0 {
		if err := EndSharedSignIn(t, gaining...); err != nil {
			return err
		}
	}
	if err := EndOwnership(t, o.ID); err != nil {
		return err
	}
	return NotifySecurity(t, actor, o.ID, models.NoticeAccessChanged, o.ID, holders...)
}

// ErrChangesNoRoles is permission_denied for everyone but administrators.
func ErrChangesNoRoles() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators make and change roles.")
}
