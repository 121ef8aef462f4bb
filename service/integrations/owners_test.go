package integrations_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// giveIntegrations gives people of the fixture the Integrations permission and nothing else.
func giveIntegrations(f *servicetest.Fixture, keys ...string) {
	f.Exec(`INSERT INTO organization_permission_definitions (id, organization_id, name, grants)
		VALUES ('def_00000000000000000000000gnt', $1, 'Integrations', '{integrations}') ON CONFLICT DO NOTHING`, f.Acme.OrganizationID)
	for _, key := range keys {
		f.Exec(`UPDATE people SET organization_definition_id = 'def_00000000000000000000000gnt' WHERE id = $1`, f.ID(key))
	}
}

// Someone with the Integrations permission alone can neither make an integration that reads
// more than she does, nor take over someone else's. An owner and an administrator can, within
// their permissions.
func TestOnlyOwnersGiveAnIntegrationMore(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	giveIntegrations(f, "bob", "cat")
	bob, cat, ann := servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "cat"), servicetest.Person(t, f, "ann")
	incoming, none, ctx := f.ID("org_incoming"), "", t.Context()

	made := integrations.NewIntegration{Name: "Mine", Scopes: []string{"work_orders:read"}, OrganizationDefinitionID: &incoming}
	_, err := f.Integrations.CreateIntegration(ctx, bob, store.NoKey, f.Acme.OrganizationID, made)
	servicetest.WantCode(t, "an integration with permissions that she lacks", err, models.CodePermissionDenied)
	made.OrganizationDefinitionID = nil
	mine, err := f.Integrations.CreateIntegration(ctx, bob, store.NoKey, f.Acme.OrganizationID, made)
	servicetest.WantCode(t, "an integration without permissions", err, "")
	if !slices.Equal(mine.Owners, []string{bob.IdentityID}) {
		t.Errorf("its owners are %v", mine.Owners)
	}
	_, err = f.Integrations.ChangeIntegration(ctx, bob, store.NoKey, mine.ID, integrations.Change{DefinitionID: &incoming})
	servicetest.WantCode(t, "permissions that its owner lacks", err, models.CodePermissionDenied)
	hook, err := f.Webhooks.CreateWebhook(ctx, bob, store.NoKey, mine.ID, webhooks.NewWebhook{URL: "http://127.0.0.1:9/mine", Events: []models.EventType{models.EventWorkOrderCreated}})
	servicetest.WantCode(t, "an address of one's own", err, "")

	other := "http://127.0.0.1:9/other"
	steps := []struct {
		what string
		do   func(ctx context.Context, actor store.Actor) error
		want models.Code // of someone who does not own it
	}{
		{"renew its secret", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Integrations.RenewIntegrationSecret(ctx, a, store.NoKey, mine.ID, 0))
		}, models.CodePermissionDenied},
		{"add a scope", func(ctx context.Context, a store.Actor) error {
			_, err := f.Integrations.ChangeIntegrationScopes(ctx, a, mine.ID, []string{"work_orders:read", "people:read"})
			return err
		}, models.CodePermissionDenied},
		{"take a scope away", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Integrations.ChangeIntegrationScopes(ctx, a, mine.ID, []string{"work_orders:read"}))
		}, ""},
		{"take its permissions away", func(ctx context.Context, a store.Actor) error {
			_, err := f.Integrations.ChangeIntegration(ctx, a, store.NoKey, mine.ID, integrations.Change{DefinitionID: &none})
			return err
		}, ""},
		{"turn it off", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Integrations.TurnIntegrationOff(ctx, a, store.NoKey, mine.ID))
		}, ""},
		{"turn it on", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Integrations.TurnIntegrationOn(ctx, a, store.NoKey, mine.ID))
		}, models.CodePermissionDenied},
		{"add an address", func(ctx context.Context, a store.Actor) error {
			_, err := f.Webhooks.CreateWebhook(ctx, a, store.NoKey, mine.ID, webhooks.NewWebhook{URL: other, Events: []models.EventType{models.EventIssueCreated}})
			return err
		}, models.CodePermissionDenied},
		{"change a URL", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.ChangeWebhook(ctx, a, store.NoKey, hook.ID, webhooks.WebhookChange{URL: &other}))
		}, models.CodePermissionDenied},
		{"add an event type", func(ctx context.Context, a store.Actor) error {
			_, err := f.Webhooks.ChangeWebhook(ctx, a, store.NoKey, hook.ID, webhooks.WebhookChange{Events: []models.EventType{models.EventWorkOrderCreated, models.EventIssueCreated}})
			return err
		}, models.CodePermissionDenied},
		{"take event types away", func(ctx context.Context, a store.Actor) error {
			_, err := f.Webhooks.ChangeWebhook(ctx, a, store.NoKey, hook.ID, webhooks.WebhookChange{Events: []models.EventType{models.EventWorkOrderCreated}})
			return err
		}, ""},
		{"renew a signing secret", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.RenewWebhookSecret(ctx, a, store.NoKey, hook.ID))
		}, models.CodePermissionDenied},
		{"test an address", func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.BeginWebhookTest(ctx, a, store.NoKey, hook.ID))
		}, ""},
	}
	for _, step := range steps {
		servicetest.WantCode(t, step.what+" as someone else", step.do(ctx, cat), step.want)
		servicetest.WantCode(t, step.what+" as an owner", step.do(ctx, bob), "")
		servicetest.WantCode(t, step.what+" as an administrator", step.do(ctx, ann), "")
	}
	for kind, about := range map[models.NoticeKind]string{models.NoticeSecretRenewed: mine.ID, models.NoticeWebhookSecretRenewed: hook.ID} {
		told := servicetest.Value[string](f, `SELECT string_agg(DISTINCT i.name, ', ' ORDER BY i.name) FROM notices n JOIN identities i ON i.id = n.person_id WHERE n.kind = $1 AND n.record_id = $2`, string(kind), about)
		servicetest.Expect(t, string(kind)+" is told to", told, "Ann Field, Bob Stone")
	}
}

// Administrators name owners, who need the Integrations permission. An owner who loses it, in
// whatever way, stops being an owner, and the administrators are told.
func TestOwnersNeedTheIntegrationsPermission(t *testing.T) {
	t.Parallel()
	giveUp := map[string]func(t *testing.T, f *servicetest.Fixture) error{
		"by another definition": func(t *testing.T, f *servicetest.Fixture) error {
			_, _, err := f.People.ChangePersonAccess(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("bob"), people.AccessChange{})
			return err
		},
		"by deactivation": func(t *testing.T, f *servicetest.Fixture) error {
			_, err := f.People.DeactivatePerson(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("bob"), "")
			return err
		},
		"by an import": func(t *testing.T, f *servicetest.Fixture) error {
			_, err := f.Imports.Overwrite(t.Context(), []byte("organization: {key: acme}\npeople: [{key: bob, organization_definition: org_nothing}]\n"))
			return err
		},
	}
	for how, give := range giveUp {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			giveIntegrations(f, "bob", "cat")
			ann, erp := servicetest.Person(t, f, "ann"), f.ID("erp")
			_, err := f.Integrations.SetIntegrationOwners(t.Context(), servicetest.Person(t, f, "cat"), store.NoKey, erp, []string{f.ID("cat")})
			servicetest.WantCode(t, "someone makes herself an owner", err, models.CodePermissionDenied)
			_, err = f.Integrations.SetIntegrationOwners(t.Context(), ann, store.NoKey, erp, []string{f.ID("bob"), f.ID("dan")})
			servicetest.WantCode(t, "an owner without the permission", err, models.CodeValidationFailed)
			record, err := f.Integrations.SetIntegrationOwners(t.Context(), ann, store.NoKey, erp, []string{f.ID("bob"), f.ID("cat")})
			servicetest.WantCode(t, "owners", err, "")
			servicetest.Expect(t, "owners", len(record.Owners), 2)
			if possible, err := f.Integrations.PossibleOwners(t.Context(), ann); err != nil || len(possible) != 3 {
				t.Errorf("possible owners are %v: %v", possible, err)
			}
			servicetest.Must(t, give(t, f))
			servicetest.Expect(t, "the owners",
				servicetest.Value[string](f, `SELECT array_to_string(owners, ' ') FROM integrations WHERE id = $1`, erp), f.ID("cat"))
			servicetest.Expect(t, "notices",
				servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE kind = $1 AND record_id = $2`, string(models.NoticeOwnerLost), erp), 1)
			if enabled := servicetest.Value[bool](f, `SELECT enabled FROM integrations WHERE id = $1`, erp); !enabled {
				t.Error("the integration is off")
			}
		})
	}
}

// An import names owners, who have the permission once it ends.
func TestImportNamesOwners(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	const keeper = "organization: {key: acme}\norganization_permission_definitions: [{key: keeper, name: Keeper, grants: [integrations]}]\n"
	_, err := f.Imports.Run(t.Context(), []byte(keeper+"integrations: [{key: erp, owners: [bob]}]\n"))
	if err == nil || !strings.Contains(err.Error(), `the owner "bob" needs the Integrations permission`) {
		t.Errorf("an owner without the permission: %v", err)
	}
	file := keeper + "people: [{key: bob, organization_definition: keeper}]\nintegrations: [{key: erp, owners: [bob, ann]}]\n"
	for range 2 {
		servicetest.Must(t, servicetest.ErrorOf(f.Imports.Run(t.Context(), []byte(file))))
	}
	servicetest.Expect(t, "owners",
		servicetest.Value[int](f, `SELECT cardinality(owners) FROM integrations WHERE id = $1`, f.ID("erp")), 2)
}

// A manager gives, replaces and takes away only what she has on the node herself; an
// administrator everything.
func TestManagersGiveWhatTheyHave(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.read,work_orders.create,work_orders.forward}' WHERE id = $1`, f.ID("manager"))
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, f.ID("annex"), f.ID("crew"), f.ID("creating"), f.Acme.OrganizationID)
	eve, ann, annex := servicetest.Person(t, f, "eve"), servicetest.Person(t, f, "ann"), f.ID("annex")
	assign := func(actor store.Actor, who, definition string) error {
		return f.Inventory.Assign(t.Context(), actor, store.NoKey, annex, f.ID(who), f.ID(definition))
	}
	for _, c := range []struct {
		what string
		err  func() error
		want models.Code
	}{
		{"more than she has, to herself", func() error { return assign(eve, "eve", "full") }, models.CodePermissionDenied},
		{"feedback, which she lacks", func() error { return assign(eve, "cat", "creating") }, models.CodePermissionDenied},
		{"what she has", func() error { return assign(eve, "cat", "reading") }, ""},
		{"her own role", func() error { return assign(eve, "cat", "manager") }, ""},
		{"only on the node", func() error { return assign(eve, "dan", "here_only") }, ""},
		{"replace what has more", func() error { return assign(eve, "crew", "reading") }, models.CodePermissionDenied},
		{"take away what has more", func() error { return f.Inventory.Unassign(t.Context(), eve, store.NoKey, annex, f.ID("crew")) }, models.CodePermissionDenied},
		{"take away what she has", func() error { return f.Inventory.Unassign(t.Context(), eve, store.NoKey, annex, f.ID("dan")) }, ""},
		{"everything, as an administrator", func() error { return assign(ann, "cat", "full") }, ""},
	} {
		servicetest.WantCode(t, c.what, c.err(), c.want)
	}
	choices, err := f.Records.AssigneeChoices(t.Context(), eve, annex)
	servicetest.Must(t, err)
	for _, d := range choices.Definitions {
		if d.Name == "Full access" || d.Name == "Creating" {
			t.Errorf("a manager is offered %s", d.Name)
		}
	}
	servicetest.Expect(t, "definitions that a manager is offered", len(choices.Definitions), 4)
	// A role that reaches below cannot be given by someone whose own ends at the node.
	f.Exec(`UPDATE permission_definitions SET applies_below = false WHERE id = $1`, f.ID("manager"))
	servicetest.WantCode(t, "below, where she has nothing", assign(eve, "zed", "reading"), models.CodePermissionDenied)
	servicetest.WantCode(t, "the node alone", assign(eve, "zed", "here_only"), "")
}

// Joining a team that has permissions on nodes gives these: the administrators are told.
func TestJoiningATeamWithPermissionsIsTold(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("cat"))
	without, err := f.People.CreateTeam(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.Acme.OrganizationID, "Without permissions")
	servicetest.Must(t, err)
	for team, want := range map[string]int{f.ID("crew"): 1, without.ID: 0} {
		_, err := f.People.AddTeamMembers(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, team, []string{f.ID("eve")})
		servicetest.Must(t, err)
		servicetest.Expect(t, "notices",
			servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE kind = $1 AND record_id = $2`, string(models.NoticeTeamAccess), team), want)
	}
}
