package integrations_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/imports"
	"millwright/service/integrations"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func newERP(scopes ...string) integrations.NewIntegration {
	return integrations.NewIntegration{Name: "New ERP", Scopes: scopes}
}

// api.md 2.6.
func TestAClientIDNamesItsCell(t *testing.T) {
	f := servicetest.New(t, func(o *store.Options) { o.Cell = "eu1" })
	made, err := f.Integrations.CreateIntegration(t.Context(), store.Operator(), store.NoKey, f.Acme.OrganizationID, newERP("work_orders:read"))
	servicetest.Must(t, err)
	imported, err := f.Imports.Run(t.Context(), []byte(`
organization: {key: igloo, name: Igloo, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 100, integrations: 2}}
integrations: [{key: cooler, name: Cooler, scopes: [work_orders:read]}]
`))
	servicetest.Must(t, err)
	cooler := imported.Integrations["cooler"]
	for id, secret := range map[string]string{made.ClientID: made.ClientSecret, cooler.ClientID: cooler.ClientSecret} {
		if digits, named := strings.CutPrefix(id, "cli_eu1_"); !named || len(digits) != 26 {
			t.Errorf("a client id is %q", id)
		}
		_, err := f.Access.IssueToken(t.Context(), id, secret, nil)
		servicetest.WantCode(t, "the token of "+id, err, "")
	}
}

func TestCreateIntegration(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	definition := f.ID("org_nothing")
	for who, test := range map[string]struct {
		actor  store.Actor
		owner  string
		logged string
	}{
		"an operator":                         {store.Operator(), "", "Millwright integration.created"},
		"an administrator":                    {servicetest.Person(t, f, "ann"), f.ID("ann"), "Ann Field " + f.ID("ann") + " integration.created"},
		"a person with the permission for it": {servicetest.Person(t, f, "ivy"), f.ID("ivy"), "Ivy Marsh " + f.ID("ivy") + " integration.created"},
	} {
		t.Run(who, func(t *testing.T) {
			made, err := f.Integrations.CreateIntegration(t.Context(), test.actor, store.NoKey, f.Acme.OrganizationID, integrations.NewIntegration{
				Name: "New ERP", Scopes: []string{"work_orders:read", "inventory:read", "work_orders:read"}, OrganizationDefinitionID: &definition,
			})
			servicetest.Must(t, err)
			if strings.Join(made.Owners, " ") != test.owner || made.OrganizationID != f.Acme.OrganizationID || made.Name != "New ERP" || !made.Enabled ||
				made.DisabledByService || !slices.Equal(made.Scopes, []string{"inventory:read", "work_orders:read"}) ||
				made.CreatedAt.String() != "2026-03-02T12:15:30.000Z" {
				t.Errorf("made %s", asJSON(t, made))
			}
			if !strings.HasPrefix(made.ClientID, "cli_") || !strings.HasPrefix(made.ClientSecret, "mwsec_") || len(made.ClientSecret) != 49 {
				t.Errorf("the credentials are %q and %q", made.ClientID, made.ClientSecret)
			}
			servicetest.Expect(t, "the log", servicetest.LogOf(f, made.ID), test.logged)
			servicetest.Expect(t, "its organization permission definition",
				servicetest.Value[string](f, `SELECT organization_definition_id FROM integrations WHERE id = $1`, made.ID), definition)
			token, err := f.Access.IssueToken(t.Context(), made.ClientID, made.ClientSecret, nil)
			if err != nil || token.Scopes.String() != "inventory:read work_orders:read" {
				t.Errorf("its token is %v, %v", token.Scopes, err)
			}
			listed, _ := integration(t, f, made.ID)
			servicetest.Expect(t, "the secret, shown a second time", listed.ClientSecret, "")
			made.ClientSecret = ""
			servicetest.Expect(t, "listed", asJSON(t, listed), asJSON(t, made))
		})
	}
}

func TestCreateIntegrationIsRejected(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	acme, operator, ann := f.Acme.OrganizationID, store.Operator(), servicetest.Person(t, f, "ann")
	foreign, node := f.Polar.IDs["org_incoming"], f.ID("full")
	of := func(name string, definition *string, scopes ...string) integrations.NewIntegration {
		return integrations.NewIntegration{Name: name, Scopes: scopes, OrganizationDefinitionID: definition}
	}
	read, empty := "work_orders:read", ""
	count := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT count(*) FROM identities), (SELECT count(*) FROM integrations),
			(SELECT count(*) FROM log_records))`)
	}
	before := count()
	for name, test := range map[string]struct {
		actor        store.Actor
		organization string
		in           integrations.NewIntegration
		code         models.Code
		pointers     string
	}{
		"a person without the permission":        {servicetest.Person(t, f, "bob"), acme, newERP(read), models.CodePermissionDenied, ""},
		"a person with every other permission":   {servicetest.Person(t, f, "ray"), acme, newERP(read), models.CodePermissionDenied, ""},
		"an integration":                         {f.Actor("erp"), acme, newERP(read), models.CodePermissionDenied, ""},
		"another organization's administrator":   {servicetest.Person(t, f, "pia"), acme, newERP(read), models.CodeNotFound, ""},
		"another organization's integration":     {f.Actor("dispatch"), acme, newERP(read), models.CodeNotFound, ""},
		"an unknown organization":                {operator, "idn_00000000000000000000000001", newERP(read), models.CodeNotFound, ""},
		"a person for an organization":           {operator, f.ID("ann"), newERP(read), models.CodeNotFound, ""},
		"a malformed id":                         {operator, "acme\xff", newERP(read), models.CodeNotFound, ""},
		"no actor":                               {store.Actor{}, acme, newERP(read), models.CodeNotFound, ""},
		"no scope":                               {operator, acme, newERP(), models.CodeValidationFailed, "/scopes"},
		"an unknown scope":                       {ann, acme, newERP(read, "work_orders:all"), models.CodeValidationFailed, "/scopes/1"},
		"an empty scope":                         {ann, acme, newERP(""), models.CodeValidationFailed, "/scopes/0"},
		"no name":                                {ann, acme, of("", nil, read), models.CodeValidationFailed, "/name"},
		"a name of 201 characters":               {ann, acme, of(strings.Repeat("ä", 201), nil, read), models.CodeValidationFailed, "/name"},
		"a name of two lines":                    {ann, acme, of("ERP\nAnn Field", nil, read), models.CodeValidationFailed, "/name"},
		"another organization's definition":      {ann, acme, of("ERP", &foreign, read), models.CodeValidationFailed, "/organization_definition_id"},
		"a definition for nodes":                 {ann, acme, of("ERP", &node, read), models.CodeValidationFailed, "/organization_definition_id"},
		"an empty definition":                    {ann, acme, of("ERP", &empty, read), models.CodeValidationFailed, "/organization_definition_id"},
		"everything wrong at once":               {ann, acme, of("", &node), models.CodeValidationFailed, "/name /scopes /organization_definition_id"},
		"everything wrong, without a permission": {servicetest.Person(t, f, "bob"), acme, of("", &node), models.CodePermissionDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := f.Integrations.CreateIntegration(t.Context(), test.actor, store.NoKey, test.organization, test.in)
			if models.CodeOf(err) != test.code {
				t.Fatalf("returned %v, %v, want %s", made, err, test.code)
			}
			if got := servicetest.Pointers(err); got != test.pointers || made.ClientSecret != "" {
				t.Errorf("it names %q, want %q", got, test.pointers)
			}
			if after := count(); after != before {
				t.Errorf("identities, integrations and Log Records went from %s to %s", before, after)
			}
		})
	}
	_, err := f.Integrations.CreateIntegration(t.Context(), ann, store.NoKey, acme, of(strings.Repeat("ä", 200), nil, read))
	servicetest.WantCode(t, "a name of 200 characters", err, "")
}

func TestThePlanLimitsIntegrations(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	create := func() error {
		_, err := f.Integrations.CreateIntegration(ctx, ann, store.NoKey, f.Acme.OrganizationID, newERP("work_orders:read"))
		return err
	}
	f.Exec(`UPDATE plans SET integrations = 6 WHERE organization_id = $1`, f.Acme.OrganizationID) // it has five
	servicetest.Must(t, create())
	if err := create(); models.CodeOf(err) != models.CodePlanRestricted || !strings.Contains(err.Error(), "6") {
		t.Errorf("the seventh of six returns %v", err)
	}
	servicetest.Expect(t, "creations are logged",
		servicetest.Value[int](f, `SELECT count(*) FROM log_records WHERE action = 'integration.created'`), 1)
	// An integration that is turned off counts, a deleted one does not.
	servicetest.Must(t, servicetest.ErrorOf(f.Integrations.TurnIntegrationOff(ctx, ann, store.NoKey, f.ID("outsider"))))
	servicetest.WantCode(t, "with one turned off, the seventh creation", create(), models.CodePlanRestricted)
	servicetest.Must(t, servicetest.ErrorOf(f.Integrations.DeleteIntegration(ctx, ann, store.NoKey, f.ID("outsider"))))
	servicetest.WantCode(t, "after a deletion", create(), "")
	// A smaller plan removes no integrations but allows no new ones. Other organizations have their own plan.
	f.Exec(`UPDATE plans SET integrations = 0 WHERE organization_id = $1`, f.Acme.OrganizationID)
	servicetest.WantCode(t, "beyond a smaller plan", create(), models.CodePlanRestricted)
	if _, err := f.Integrations.TurnIntegrationOn(ctx, ann, store.NoKey, f.ID("erp")); err != nil {
		t.Error(err)
	}
	f.Exec(`UPDATE plans SET integrations = 3 WHERE organization_id = $1`, f.Polar.OrganizationID) // it has two
	_, err := f.Integrations.CreateIntegration(ctx, store.Operator(), store.NoKey, f.Polar.OrganizationID, newERP("work_orders:read"))
	servicetest.WantCode(t, "the other organization", err, "")
}

// Concurrent creations, by people and by imports, do not exceed the plan.
func TestThePlanLimitsConcurrentCreations(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	const held, free, tries = 5, 2, 8
	const atOnce = 2 // of the organization; the others wait for them
	f.Exec(`UPDATE plans SET integrations = $2 WHERE organization_id = $1`, f.Acme.OrganizationID, held+free)
	// Those that run wait for this lock, or one for the other.
	gate := servicetest.Begin(t, f)
	servicetest.ExecIn(t, gate, `SELECT FROM plans WHERE organization_id = $1 FOR UPDATE`, f.Acme.OrganizationID)
	outcomes := make([]error, tries)
	var all sync.WaitGroup
	for n := range tries {
		all.Go(func() {
			if n%2 == 0 {
				_, outcomes[n] = f.Integrations.CreateIntegration(ctx, ann, store.NoKey, f.Acme.OrganizationID, newERP("work_orders:read"))
				return
			}
			_, outcomes[n] = f.Imports.Run(ctx, fmt.Appendf(nil, `
organization: {key: acme}
integrations: [{key: made_%d, name: Made %d, scopes: ["work_orders:read"]}]`, n, n))
		})
	}
	servicetest.AwaitLocks(t, f, atOnce)
	servicetest.Must(t, gate.Commit(ctx))
	all.Wait()
	made := 0
	for n, err := range outcomes {
		_, rejected := errors.AsType[*imports.FileError](err)
		switch {
		case err == nil:
			made++
		case n%2 == 0 && models.CodeOf(err) != models.CodePlanRestricted, n%2 == 1 && !rejected:
			t.Errorf("try %d returns %v", n, err)
		}
	}
	there := servicetest.Value[int](f, `SELECT count(*) FROM integrations WHERE organization_id = $1`, f.Acme.OrganizationID)
	if made != free || there != held+free {
		t.Errorf("%d were made and %d are there, want %d and %d", made, there, free, held+free)
	}
}
