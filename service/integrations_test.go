package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// managers adds people to the fixture: ivy, who may only manage integrations; and ray,
// who has every other permission. Ann, an administrator, may manage them, too.
func managers(t *testing.T, f *servicetest.Fixture) {
	t.Helper()
	imported, err := f.Import(t.Context(), []byte(`
organization: {key: acme}
organization_permission_definitions:
  - {key: org_integrations, name: Integrations, grants: [integrations]}
  - {key: org_rest, name: The rest, grants: [incoming_work_orders, log_records, people]}
people:
  - {key: ivy, name: Ivy Marsh, email: ivy@acme.example.com, organization_definition: org_integrations}
  - {key: ray, name: Ray Banks, email: ray@acme.example.com, organization_definition: org_rest}
`))
	if err != nil {
		t.Fatal(err)
	}
	f.Acme.IDs = imported.IDs
}

func person(t *testing.T, f *servicetest.Fixture, key string) service.Actor {
	t.Helper()
	actor, err := f.PersonActor(t.Context(), f.ID(key))
	if err != nil {
		t.Fatal(err)
	}
	return actor
}

// logOf returns the Log Records of a record, one per line: name, id and action.
func logOf(f *servicetest.Fixture, id string) string {
	return servicetest.Value[string](f, `
		SELECT coalesce(string_agg(actor_name || coalesce(' ' || actor_id, '') || ' ' || action, E'\n' ORDER BY id), '')
		FROM log_records WHERE record_id = $1`, id)
}

// rowOf returns everything stored about an integration, to see whether it changed.
func rowOf(f *servicetest.Fixture, id string) string {
	return servicetest.Value[string](f, `
		SELECT to_jsonb(i)::text || to_jsonb(n)::text || (SELECT count(*) FROM assignments WHERE identity_id = i.id)
		FROM integrations i JOIN identities n ON n.id = i.id WHERE i.id = $1`, id)
}

func newERP(scopes ...string) service.NewIntegration {
	return service.NewIntegration{Name: "New ERP", Scopes: scopes}
}

// integrationChange is one way to change an integration.
type integrationChange struct {
	name, action string
	do           func(actor service.Actor, id string) (service.IntegrationRecord, error)
	// before prepares the integration so that the change has an effect.
	before func(id string)
	// changed makes the expected change in the record.
	changed func(*service.IntegrationRecord)
	// operators is set if only operators may make the change.
	operators bool
	// always is set if repeating it changes something again.
	always bool
}

// integrationChanges returns all of them.
func integrationChanges(t *testing.T, f *servicetest.Fixture) []integrationChange {
	ctx := t.Context()
	set := func(sql string) func(string) {
		return func(id string) { f.Exec(`UPDATE integrations SET `+sql+` WHERE id = $1`, id) }
	}
	return []integrationChange{
		{
			name: "renaming", action: "integration.renamed",
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.RenameIntegration(ctx, a, id, "Renamed")
			},
			changed: func(r *service.IntegrationRecord) { r.Name = "Renamed" },
		},
		{
			name: "renewing the secret", action: "integration.secret_renewed", always: true,
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.RenewIntegrationSecret(ctx, a, id)
			},
			changed: func(*service.IntegrationRecord) {},
		},
		{
			name: "changing the scopes", action: "integration.scopes_changed",
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.ChangeIntegrationScopes(ctx, a, id, []string{"people:read", "inventory:read", "people:read"})
			},
			changed: func(r *service.IntegrationRecord) { r.Scopes = []string{"inventory:read", "people:read"} },
		},
		{
			name: "turning off", action: "integration.turned_off",
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.TurnIntegrationOff(ctx, a, id)
			},
			changed: func(r *service.IntegrationRecord) { r.Enabled = false },
		},
		{
			name: "turning on", action: "integration.turned_on", before: set(`enabled = false`),
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.TurnIntegrationOn(ctx, a, id)
			},
			changed: func(r *service.IntegrationRecord) { r.Enabled = true },
		},
		{
			name: "disabling", action: "integration.disabled_by_service", operators: true,
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.DisableIntegration(ctx, a, id)
			},
			changed: func(r *service.IntegrationRecord) { r.DisabledByService = true },
		},
		{
			name: "enabling", action: "integration.enabled_by_service", operators: true, before: set(`disabled_by_service = true`),
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.EnableIntegration(ctx, a, id)
			},
			changed: func(r *service.IntegrationRecord) { r.DisabledByService = false },
		},
		{
			name: "deleting", action: "integration.deleted",
			do: func(a service.Actor, id string) (service.IntegrationRecord, error) {
				return f.DeleteIntegration(ctx, a, id)
			},
			changed: func(r *service.IntegrationRecord) { r.Enabled = false },
		},
	}
}

func integration(t *testing.T, f *servicetest.Fixture, id string) (service.IntegrationRecord, bool) {
	t.Helper()
	all, err := f.Integrations(t.Context(), service.IntegrationFilter{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(i service.IntegrationRecord) bool { return i.ID == id })
	if at < 0 {
		return service.IntegrationRecord{}, false
	}
	return all[at], true
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestManagingIntegrationsIsRejected(t *testing.T) {
	for i, named := range integrationChanges(t, servicetest.New(t)) {
		t.Run(named.name, func(t *testing.T) {
			f := servicetest.New(t)
			managers(t, f)
			id := f.ID("reader")
			change := integrationChanges(t, f)[i]
			if change.before != nil {
				change.before(id)
			}
			untouched := rowOf(f, id)
			rejected := map[string]models.Code{
				"ray": models.CodePermissionDenied, "bob": models.CodePermissionDenied, "erp": models.CodePermissionDenied,
				"reader": models.CodePermissionDenied, "pia": models.CodeNotFound, "dispatch": models.CodeNotFound,
			}
			if change.operators {
				rejected["ann"], rejected["ivy"] = models.CodePermissionDenied, models.CodePermissionDenied
			}
			for who, code := range rejected {
				actor := f.Actor(who)
				if servicetest.Value[string](f, `SELECT kind FROM identities WHERE id = $1`, f.ID(who)) == "person" {
					actor = person(t, f, who)
				}
				record, err := change.do(actor, id)
				if models.CodeOf(err) != code || asJSON(t, record) != asJSON(t, service.IntegrationRecord{}) {
					t.Errorf("%s returns %v, %v, want %s", who, record, err, code)
				}
			}
			if row := rowOf(f, id); row != untouched || logOf(f, id) != "" {
				t.Errorf("a rejected change left %s\nbefore %s\nlog: %s", row, untouched, logOf(f, id))
			}
			if _, err := change.do(service.Actor{}, id); models.CodeOf(err) != models.CodeNotFound {
				t.Errorf("without an actor: %v", err)
			}
		})
	}
}

func TestIntegrationsChange(t *testing.T) {
	for i, named := range integrationChanges(t, servicetest.New(t)) {
		t.Run(named.name, func(t *testing.T) {
			f := servicetest.New(t)
			managers(t, f)
			change := integrationChanges(t, f)[i]
			for who, key := range map[string]string{"operator": "reader", "ann": "creator", "ivy": "roofer"} {
				if change.operators && who != "operator" {
					continue
				}
				id := f.ID(key)
				if change.before != nil {
					change.before(id)
				}
				actor, logged := service.Operator(), "Millwright "
				if who != "operator" {
					actor = person(t, f, who)
					logged = actor.Name + " " + actor.IdentityID + " "
				}
				want, _ := integration(t, f, id)
				others := rowOf(f, f.ID("erp")) + rowOf(f, f.ID("dispatch"))
				got, err := change.do(actor, id)
				if err != nil {
					t.Fatal(err)
				}
				change.changed(&want)
				want.ClientSecret = got.ClientSecret
				if asJSON(t, got) != asJSON(t, want) {
					t.Errorf("%s gets %s\nwant %s", who, asJSON(t, got), asJSON(t, want))
				}
				if renewed := change.action == "integration.secret_renewed"; renewed != strings.HasPrefix(got.ClientSecret, "mwsec_") {
					t.Errorf("the secret shown is %q", got.ClientSecret)
				} else if renewed {
					if _, err := f.IssueToken(t.Context(), got.ClientID, got.ClientSecret, nil); err != nil {
						t.Errorf("the secret shown gets no token: %v", err)
					}
				}
				if log := logOf(f, id); log != logged+change.action {
					t.Errorf("the log says %q, want %q", log, logged+change.action)
				}
				if servicetest.Value[string](f, `SELECT organization_id FROM log_records WHERE record_id = $1`, id) != f.Acme.OrganizationID {
					t.Error("the log is another organization's")
				}
				listed, there := integration(t, f, id)
				want.ClientSecret = ""
				if deleted := change.action == "integration.deleted"; there == deleted || there && asJSON(t, listed) != asJSON(t, want) {
					t.Errorf("listed %s\nwant %s", asJSON(t, listed), asJSON(t, want))
				}
				if rowOf(f, f.ID("erp"))+rowOf(f, f.ID("dispatch")) != others {
					t.Error("other integrations changed too")
				}
			}
		})
	}
}

// Repeating a change writes and logs nothing.
func TestIntegrationsChangeOnce(t *testing.T) {
	for i, named := range integrationChanges(t, servicetest.New(t)) {
		t.Run(named.name, func(t *testing.T) {
			f := servicetest.New(t)
			change, id := integrationChanges(t, f)[i], f.ID("reader")
			if change.before != nil {
				change.before(id)
			}
			first, err := change.do(service.Operator(), id)
			if err != nil {
				t.Fatal(err)
			}
			row, log := rowOf(f, id), logOf(f, id)
			again, err := change.do(service.Operator(), id)
			switch {
			case change.action == "integration.deleted":
				if models.CodeOf(err) != models.CodeNotFound {
					t.Errorf("a deleted integration returns %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case change.always:
				if logOf(f, id) != log+"\n"+log || again.ClientSecret == first.ClientSecret {
					t.Errorf("the second time is no change: %s", logOf(f, id))
				}
				return
			case asJSON(t, again) != asJSON(t, first):
				t.Errorf("answered %s, first %s", asJSON(t, again), asJSON(t, first))
			}
			if rowOf(f, id) != row || logOf(f, id) != log {
				t.Errorf("the second time changed something\n%s\nbefore %s\nlog: %s", rowOf(f, id), row, logOf(f, id))
			}
		})
	}
}

func TestUnknownIntegrationsAreNotFound(t *testing.T) {
	f := servicetest.New(t)
	if _, err := f.DeleteIntegration(t.Context(), service.Operator(), f.ID("outsider")); err != nil {
		t.Fatal(err)
	}
	before := servicetest.Value[int](f, `SELECT count(*) FROM log_records`)
	for what, id := range map[string]string{
		"an id of nothing": "idn_00000000000000000000000001", "a person": f.ID("ann"), "a node": f.ID("hq"), "no id": "erp",
		"nothing": "", "NUL": "idn_\x00", "no UTF-8": "\xff", "a deleted one": f.ID("outsider"),
	} {
		for _, change := range integrationChanges(t, f) {
			if _, err := change.do(service.Operator(), id); models.CodeOf(err) != models.CodeNotFound {
				t.Errorf("%s of %s returns %v", change.name, what, err)
			}
		}
	}
	if after := servicetest.Value[int](f, `SELECT count(*) FROM log_records`); after != before {
		t.Error("what is not found is logged")
	}
}

func TestCreateIntegration(t *testing.T) {
	f := servicetest.New(t)
	managers(t, f)
	definition := f.ID("org_incoming")
	for who, test := range map[string]struct {
		actor  service.Actor
		owner  string
		logged string
	}{
		"an operator":                         {service.Operator(), "", "Millwright integration.created"},
		"an administrator":                    {person(t, f, "ann"), f.ID("ann"), "Ann Field " + f.ID("ann") + " integration.created"},
		"a person with the permission for it": {person(t, f, "ivy"), f.ID("ivy"), "Ivy Marsh " + f.ID("ivy") + " integration.created"},
	} {
		t.Run(who, func(t *testing.T) {
			made, err := f.CreateIntegration(t.Context(), test.actor, f.Acme.OrganizationID, service.NewIntegration{
				Name: "New ERP", Scopes: []string{"work_orders:read", "inventory:read", "work_orders:read"}, OrganizationDefinitionID: &definition,
			})
			if err != nil {
				t.Fatal(err)
			}
			owner := ""
			if made.OwnerID != nil {
				owner = *made.OwnerID
			}
			if owner != test.owner || made.OrganizationID != f.Acme.OrganizationID || made.Name != "New ERP" || !made.Enabled ||
				made.DisabledByService || !slices.Equal(made.Scopes, []string{"inventory:read", "work_orders:read"}) ||
				made.CreatedAt.String() != "2026-03-02T12:15:30.000Z" {
				t.Errorf("made %s", asJSON(t, made))
			}
			if !strings.HasPrefix(made.ClientID, "cli_") || !strings.HasPrefix(made.ClientSecret, "mwsec_") || len(made.ClientSecret) != 49 {
				t.Errorf("the credentials are %q and %q", made.ClientID, made.ClientSecret)
			}
			if log := logOf(f, made.ID); log != test.logged {
				t.Errorf("the log says %q, want %q", log, test.logged)
			}
			if got := servicetest.Value[string](f, `SELECT organization_definition_id FROM integrations WHERE id = $1`, made.ID); got != definition {
				t.Errorf("its organization permission definition is %s", got)
			}
			token, err := f.IssueToken(t.Context(), made.ClientID, made.ClientSecret, nil)
			if err != nil || token.Scopes.String() != "inventory:read work_orders:read" {
				t.Errorf("its token is %v, %v", token.Scopes, err)
			}
			listed, _ := integration(t, f, made.ID)
			if listed.ClientSecret != "" {
				t.Error("the secret is shown a second time")
			}
			made.ClientSecret = ""
			if asJSON(t, listed) != asJSON(t, made) {
				t.Errorf("listed %s, made %s", asJSON(t, listed), asJSON(t, made))
			}
		})
	}
}

func TestCreateIntegrationIsRejected(t *testing.T) {
	f := servicetest.New(t)
	managers(t, f)
	acme, operator, ann := f.Acme.OrganizationID, service.Operator(), person(t, f, "ann")
	foreign, node := f.Polar.IDs["org_incoming"], f.ID("full")
	of := func(name string, definition *string, scopes ...string) service.NewIntegration {
		return service.NewIntegration{Name: name, Scopes: scopes, OrganizationDefinitionID: definition}
	}
	read, empty := "work_orders:read", ""
	count := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT count(*) FROM identities), (SELECT count(*) FROM integrations),
			(SELECT count(*) FROM log_records))`)
	}
	before := count()
	for name, test := range map[string]struct {
		actor        service.Actor
		organization string
		in           service.NewIntegration
		code         models.Code
		pointers     string
	}{
		"a person without the permission":        {person(t, f, "bob"), acme, newERP(read), models.CodePermissionDenied, ""},
		"a person with every other permission":   {person(t, f, "ray"), acme, newERP(read), models.CodePermissionDenied, ""},
		"an integration":                         {f.Actor("erp"), acme, newERP(read), models.CodePermissionDenied, ""},
		"another organization's administrator":   {person(t, f, "pia"), acme, newERP(read), models.CodeNotFound, ""},
		"another organization's integration":     {f.Actor("dispatch"), acme, newERP(read), models.CodeNotFound, ""},
		"an unknown organization":                {operator, "idn_00000000000000000000000001", newERP(read), models.CodeNotFound, ""},
		"a person for an organization":           {operator, f.ID("ann"), newERP(read), models.CodeNotFound, ""},
		"a malformed id":                         {operator, "acme\xff", newERP(read), models.CodeNotFound, ""},
		"no actor":                               {service.Actor{}, acme, newERP(read), models.CodeNotFound, ""},
		"no scope":                               {operator, acme, newERP(), models.CodeValidationFailed, "/scopes"},
		"an unknown scope":                       {ann, acme, newERP(read, "work_orders:all"), models.CodeValidationFailed, "/scopes/1"},
		"an empty scope":                         {ann, acme, newERP(""), models.CodeValidationFailed, "/scopes/0"},
		"no name":                                {ann, acme, of("", nil, read), models.CodeValidationFailed, "/name"},
		"a blank name":                           {ann, acme, of(" \t", nil, read), models.CodeValidationFailed, "/name"},
		"a name of 201 characters":               {ann, acme, of(strings.Repeat("ä", 201), nil, read), models.CodeValidationFailed, "/name"},
		"a name of two lines":                    {ann, acme, of("ERP\nAnn Field", nil, read), models.CodeValidationFailed, "/name"},
		"a name with NUL":                        {ann, acme, of("ERP\x00", nil, read), models.CodeValidationFailed, "/name"},
		"a name that is no UTF-8":                {ann, acme, of("ERP\xff", nil, read), models.CodeValidationFailed, "/name"},
		"another organization's definition":      {ann, acme, of("ERP", &foreign, read), models.CodeValidationFailed, "/organization_definition_id"},
		"a definition for nodes":                 {ann, acme, of("ERP", &node, read), models.CodeValidationFailed, "/organization_definition_id"},
		"an empty definition":                    {ann, acme, of("ERP", &empty, read), models.CodeValidationFailed, "/organization_definition_id"},
		"everything wrong at once":               {ann, acme, of("", &node), models.CodeValidationFailed, "/name /scopes /organization_definition_id"},
		"everything wrong, without a permission": {person(t, f, "bob"), acme, of("", &node), models.CodePermissionDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := f.CreateIntegration(t.Context(), test.actor, test.organization, test.in)
			refusal, _ := errors.AsType[*models.Error](err)
			if models.CodeOf(err) != test.code {
				t.Fatalf("answered %v, %v, want %s", made, err, test.code)
			}
			var pointers []string
			for _, field := range refusal.Fields {
				pointers = append(pointers, field.Pointer)
			}
			if got := strings.Join(pointers, " "); got != test.pointers || made.ClientSecret != "" {
				t.Errorf("it names %q, want %q", got, test.pointers)
			}
			if after := count(); after != before {
				t.Errorf("identities, integrations and Log Records went from %s to %s", before, after)
			}
		})
	}
	if _, err := f.CreateIntegration(t.Context(), ann, acme, of(strings.Repeat("ä", 200), nil, read)); err != nil {
		t.Errorf("a name of 200 characters: %v", err)
	}
}

func TestRenamesAndScopesAreChecked(t *testing.T) {
	f := servicetest.New(t)
	ann, id := person(t, f, "ann"), f.ID("reader")
	before := rowOf(f, id)
	for _, name := range []string{"", " ", strings.Repeat("x", 201), "a\x1b[2Jb", "\xff"} {
		if _, err := f.RenameIntegration(t.Context(), ann, id, name); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("the name %q returns %v", name, err)
		}
	}
	for _, scopes := range [][]string{nil, {""}, {"root"}, {"work_orders:read", "root"}} {
		if _, err := f.ChangeIntegrationScopes(t.Context(), ann, id, scopes); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("the scopes %q are answered %v", scopes, err)
		}
	}
	if rowOf(f, id) != before || logOf(f, id) != "" {
		t.Error("a refused change changed something")
	}
}

func TestRenamingAnIntegrationStampsItsIdentity(t *testing.T) {
	f := servicetest.New(t)
	id := f.ID("reader")
	stamp := func() string {
		return servicetest.Value[string](f, `SELECT changed_xid || ' ' || changed_at FROM identities WHERE id = $1`, id)
	}
	before := stamp()
	if _, err := f.RenameIntegration(t.Context(), service.Operator(), id, "Renamed"); err != nil {
		t.Fatal(err)
	}
	// The time of the change increases even if the clock did not move.
	after := stamp()
	for i, what := range []string{"transaction", "day", "time"} {
		if i != 1 && strings.Fields(before)[i] == strings.Fields(after)[i] {
			t.Errorf("the %s of the change is still %s", what, strings.Fields(after)[i])
		}
	}
}

func TestThePlanLimitsIntegrations(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), person(t, f, "ann")
	create := func() error {
		_, err := f.CreateIntegration(ctx, ann, f.Acme.OrganizationID, newERP("work_orders:read"))
		return err
	}
	f.Exec(`UPDATE plans SET integrations = 6 WHERE organization_id = $1`, f.Acme.OrganizationID) // it has five
	if err := create(); err != nil {
		t.Fatal(err)
	}
	if err := create(); models.CodeOf(err) != models.CodePlanRestricted || !strings.Contains(err.Error(), "6") {
		t.Errorf("the seventh of six returns %v", err)
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM log_records WHERE action = 'integration.created'`); n != 1 {
		t.Errorf("%d creations are logged, want 1", n)
	}
	// An integration that is turned off counts, a deleted one does not.
	if _, err := f.TurnIntegrationOff(ctx, ann, f.ID("outsider")); err != nil {
		t.Fatal(err)
	}
	if err := create(); models.CodeOf(err) != models.CodePlanRestricted {
		t.Errorf("with one turned off, the seventh creation returns %v", err)
	}
	if _, err := f.DeleteIntegration(ctx, ann, f.ID("outsider")); err != nil {
		t.Fatal(err)
	}
	if err := create(); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	// A smaller plan removes no integrations but allows no new ones. Other organizations have their own plan.
	f.Exec(`UPDATE plans SET integrations = 0 WHERE organization_id = $1`, f.Acme.OrganizationID)
	if err := create(); models.CodeOf(err) != models.CodePlanRestricted {
		t.Errorf("beyond a smaller plan: %v", err)
	}
	if _, err := f.TurnIntegrationOn(ctx, ann, f.ID("erp")); err != nil {
		t.Error(err)
	}
	f.Exec(`UPDATE plans SET integrations = 3 WHERE organization_id = $1`, f.Polar.OrganizationID) // it has two
	if _, err := f.CreateIntegration(ctx, service.Operator(), f.Polar.OrganizationID, newERP("work_orders:read")); err != nil {
		t.Errorf("the other organization: %v", err)
	}
}

// awaitLocks waits until count transactions of the test wait for locks.
func awaitLocks(t *testing.T, f *servicetest.Fixture, count int) {
	t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for servicetest.Value[int](f, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`) < count {
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatalf("fewer than %d transactions wait for a lock", count)
		}
	}
}

// Concurrent creations, by people and by imports, do not exceed the plan.
func TestThePlanLimitsConcurrentCreations(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), person(t, f, "ann")
	const held, free, tries = 5, 2, 8
	f.Exec(`UPDATE plans SET integrations = $2 WHERE organization_id = $1`, f.Acme.OrganizationID, held+free)
	// They all wait for this lock, or one import for another, until each has begun.
	gate, err := f.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Rollback(ctx) }()
	if _, err := gate.Exec(ctx, `SELECT FROM plans WHERE organization_id = $1 FOR UPDATE`, f.Acme.OrganizationID); err != nil {
		t.Fatal(err)
	}
	outcomes := make([]error, tries)
	var all sync.WaitGroup
	for n := range tries {
		all.Go(func() {
			if n%2 == 0 {
				_, outcomes[n] = f.CreateIntegration(ctx, ann, f.Acme.OrganizationID, newERP("work_orders:read"))
				return
			}
			_, outcomes[n] = f.Import(ctx, fmt.Appendf(nil, `
organization: {key: acme}
integrations: [{key: made_%d, name: Made %d, scopes: ["work_orders:read"]}]`, n, n))
		})
	}
	awaitLocks(t, f, tries)
	if err := gate.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	made := 0
	for n, err := range outcomes {
		_, refused := errors.AsType[*service.ImportError](err)
		switch {
		case err == nil:
			made++
		case n%2 == 0 && models.CodeOf(err) != models.CodePlanRestricted, n%2 == 1 && !refused:
			t.Errorf("try %d returns %v", n, err)
		}
	}
	there := servicetest.Value[int](f, `SELECT count(*) FROM integrations WHERE organization_id = $1`, f.Acme.OrganizationID)
	if made != free || there != held+free {
		t.Errorf("%d were made and %d are there, want %d and %d", made, there, free, held+free)
	}
}

func TestIntegrationsAreListedByOrganization(t *testing.T) {
	f := servicetest.New(t)
	names := func(organization string) string {
		all, err := f.Integrations(t.Context(), service.IntegrationFilter{OrganizationID: organization})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(all, func(a, b service.IntegrationRecord) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("not the oldest first: %s", asJSON(t, all))
		}
		var names []string
		for _, i := range all {
			names = append(names, i.Name)
		}
		return strings.Join(slices.Sorted(slices.Values(names)), ", ")
	}
	for name, test := range map[string]struct{ organization, want string }{
		"all":              {"", "Back office, Creator, Dispatch, ERP, Outsider, Reader, Roofer"},
		"the organization": {f.Acme.OrganizationID, "Creator, ERP, Outsider, Reader, Roofer"},
		"the other":        {f.Polar.OrganizationID, "Back office, Dispatch"},
	} {
		if got := names(test.organization); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	for _, organization := range []string{"idn_00000000000000000000000001", f.ID("ann"), "acme"} {
		if _, err := f.Integrations(t.Context(), service.IntegrationFilter{OrganizationID: organization}); models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("those of %s: %v", organization, err)
		}
	}
}

func TestDisablingAndTurningOffAreIndependent(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann, operator, id := t.Context(), person(t, f, "ann"), service.Operator(), f.ID("erp")
	usable := func() bool {
		_, err := f.IssueToken(ctx, "cli_erp", "secret-of-the-erp-integration", nil)
		if err != nil && models.CodeOf(err) != models.CodeUnauthorizedClient {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, step := range []struct {
		name   string
		do     func() (service.IntegrationRecord, error)
		usable bool
	}{
		{"disabled", func() (service.IntegrationRecord, error) { return f.DisableIntegration(ctx, operator, id) }, false},
		{"turned on by a person", func() (service.IntegrationRecord, error) { return f.TurnIntegrationOn(ctx, ann, id) }, false},
		{"turned off by a person", func() (service.IntegrationRecord, error) { return f.TurnIntegrationOff(ctx, ann, id) }, false},
		{"enabled", func() (service.IntegrationRecord, error) { return f.EnableIntegration(ctx, operator, id) }, false},
		{"turned on by a person at last", func() (service.IntegrationRecord, error) { return f.TurnIntegrationOn(ctx, ann, id) }, true},
	} {
		if _, err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := usable(); got != step.usable {
			t.Errorf("%s: whether it gets tokens is %t", step.name, got)
		}
	}
}

func TestADeletedIntegrationGetsNoWorkAndKeepsItsName(t *testing.T) {
	f := servicetest.New(t)
	ctx, erp, id := t.Context(), f.Actor("erp"), f.ID("erp")
	order := create(t, f)
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, f.ID("crew"), id, f.Acme.OrganizationID)
	f.Exec(`UPDATE permission_definitions SET inventory_manager = true WHERE id = $1`, f.ID("full")) // which the ERP has
	if _, err := f.DeleteIntegration(ctx, person(t, f, "ann"), id); err != nil {
		t.Fatal(err)
	}
	// Pending deliveries to its addresses are skipped, and it gets no new ones.
	pending := servicetest.Value[string](f, `SELECT id FROM deliveries WHERE webhook_id = $1`, f.ID("erp_hook"))
	if claimed := claim(t, f, "erp_hook"); len(claimed.Deliveries) != 0 || status(t, f, pending) != models.DeliverySkipped {
		t.Errorf("the pending delivery is claimed: %v, and %s", claimed.Deliveries, status(t, f, pending))
	}
	answer, err := f.CreateWorkOrder(ctx, person(t, f, "ann"), service.Call{}, service.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Next"})
	if err != nil {
		t.Fatal(err)
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM deliveries WHERE webhook_id = $1`, f.ID("erp_hook")); n != 1 {
		t.Errorf("there are %d deliveries, want the first alone", n)
	}
	// It gets no new work, neither as an inventory manager nor through its team.
	next := read[struct{ Assignees []string }](t, answer.Body)
	if slices.Contains(next.Assignees, id) {
		t.Error("new work goes to the deleted integration")
	}
	_, err = f.AssignWorkOrder(ctx, person(t, f, "ann"), service.Call{}, answer.RecordID, []string{id}, nil)
	if models.CodeOf(err) != models.CodeRuleViolation {
		t.Errorf("assigning it returns %v", err)
	}
	// Its records keep its name.
	reader := person(t, f, "ann")
	body, err := f.WorkOrder(ctx, reader, order)
	if err != nil {
		t.Fatal(err)
	}
	record := read[struct {
		CreatedBy string `json:"created_by"`
		People    []struct {
			IdentityID string `json:"identity_id"`
			Name       string
		}
	}](t, body)
	named := slices.ContainsFunc(record.People, func(p struct {
		IdentityID string `json:"identity_id"`
		Name       string
	}) bool {
		return p.IdentityID == id && p.Name == "ERP"
	})
	if record.CreatedBy != erp.IdentityID || !named {
		t.Errorf("its work order is now %s", body)
	}
	if log := logOf(f, order); !strings.Contains(log, "(API) "+id+" work_order.created") {
		t.Errorf("its Log Record is now %q", log)
	}
}

func TestAnImportCreatesADeletedIntegrationAgain(t *testing.T) {
	f := servicetest.New(t)
	first, err := f.Import(t.Context(), []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	old := first.Integrations["erp"]
	if _, err := f.DeleteIntegration(t.Context(), service.Operator(), old.IdentityID); err != nil {
		t.Fatal(err)
	}
	second, err := f.Import(t.Context(), []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	made := second.Integrations["erp"]
	if made.IdentityID == old.IdentityID || made.ClientID == old.ClientID || made.ClientSecret == "" ||
		made.Webhooks["hook"].ID == old.Webhooks["hook"].ID || second.IDs["below"] != first.IDs["below"] {
		t.Errorf("imported again: %+v, first %+v", made, old)
	}
}

// Neither logs nor errors contain secrets or e-mail addresses.
func TestManagingIntegrationsLogsNoSecrets(t *testing.T) {
	var log bytes.Buffer
	f := servicetest.New(t, func(o *service.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	ctx := t.Context()
	ann, err := f.PersonActor(ctx, "Ann@acme.example.com")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"ann@acme.example.com", "secret-of-the-reader-integration"}
	var errs []error
	made, err := f.CreateIntegration(ctx, ann, f.Acme.OrganizationID, newERP("work_orders:read"))
	errs = append(errs, err)
	secrets = append(secrets, made.ClientSecret)
	for _, change := range integrationChanges(t, f) {
		for _, actor := range []service.Actor{ann, service.Operator(), person(t, f, "bob"), f.Actor("erp")} {
			record, err := change.do(actor, f.ID("reader"))
			errs = append(errs, err)
			if record.ClientSecret != "" {
				secrets = append(secrets, record.ClientSecret)
			}
		}
	}
	_, err = f.PersonActor(ctx, "stranger@acme.example.com\xff")
	wantCode(t, "a reference that is no text", err, models.CodeNotFound)
	_, err = f.PersonActor(ctx, "stranger@acme.example.com")
	errs = append(errs, err, f.Assign(ctx, ann, f.ID("hq"), "ann@acme.example.com", "x"))
	secrets = append(secrets, "stranger@acme.example.com")
	rows := servicetest.Value[string](f, `SELECT coalesce(string_agg(l::text, E'\n'), '') FROM log_records l`)
	said := strings.ToLower(log.String() + fmt.Sprint(errs) + rows)
	for _, secret := range secrets {
		if strings.Contains(said, strings.ToLower(secret)) {
			t.Errorf("%q is in\n%s", secret, said)
		}
	}
}
