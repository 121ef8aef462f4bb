package integrations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// rowOf returns everything stored about an integration, to see whether it changed.
func rowOf(f *servicetest.Fixture, id string) string {
	return servicetest.Value[string](f, `
		SELECT to_jsonb(i)::text || to_jsonb(n)::text || (SELECT count(*) FROM assignments WHERE identity_id = i.id)
		FROM integrations i JOIN identities n ON n.id = i.id WHERE i.id = $1`, id)
}

// integrationChange is one way to change an integration.
type integrationChange struct {
	name, action string
	do           func(actor store.Actor, id string) (integrations.Record, error)
	// before prepares the integration so that the change has an effect.
	before func(id string)
	// changed makes the expected change in the record.
	changed func(*integrations.Record)
	// operators is set if only operators may make the change.
	operators bool
	// always is set if repeating it changes something again.
	always bool
}

// integrationChanges returns all of them, in an order in which each can follow the others.
func integrationChanges(t *testing.T, f *servicetest.Fixture) []integrationChange {
	ctx := t.Context()
	set := func(sql string) func(string) {
		return func(id string) { f.Exec(`UPDATE integrations SET `+sql+` WHERE id = $1`, id) }
	}
	return []integrationChange{
		{
			name: "renaming", action: "integration.renamed",
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.RenameIntegration(ctx, a, id, "Renamed")
			},
			changed: func(r *integrations.Record) { r.Name = "Renamed" },
		},
		{
			name: "renewing the secret", action: "integration.secret_renewed", always: true,
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.RenewIntegrationSecret(ctx, a, store.NoKey, id, 0)
			},
			changed: func(*integrations.Record) {},
		},
		{
			name: "changing the scopes", action: "integration.scopes_changed",
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.ChangeIntegrationScopes(ctx, a, id, []string{"people:read", "inventory:read", "people:read"})
			},
			changed: func(r *integrations.Record) { r.Scopes = []string{"inventory:read", "people:read"} },
		},
		{
			name: "turning off", action: "integration.turned_off",
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.TurnIntegrationOff(ctx, a, store.NoKey, id)
			},
			changed: func(r *integrations.Record) { r.Enabled = false },
		},
		{
			name: "turning on", action: "integration.turned_on", before: set(`enabled = false`),
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.TurnIntegrationOn(ctx, a, store.NoKey, id)
			},
			changed: func(r *integrations.Record) { r.Enabled = true },
		},
		{
			name: "disabling", action: "integration.disabled_by_service", operators: true,
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.DisableIntegration(ctx, a, id)
			},
			changed: func(r *integrations.Record) { r.DisabledByService = true },
		},
		{
			name: "enabling", action: "integration.enabled_by_service", operators: true, before: set(`disabled_by_service = true`),
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.EnableIntegration(ctx, a, id)
			},
			changed: func(r *integrations.Record) { r.DisabledByService = false },
		},
		{
			name: "deleting", action: "integration.deleted",
			do: func(a store.Actor, id string) (integrations.Record, error) {
				return f.Integrations.DeleteIntegration(ctx, a, store.NoKey, id)
			},
			changed: func(r *integrations.Record) { r.Enabled = false },
		},
	}
}

func integration(t *testing.T, f *servicetest.Fixture, id string) (integrations.Record, bool) {
	t.Helper()
	all, err := f.Integrations.List(t.Context(), "")
	servicetest.Must(t, err)
	at := slices.IndexFunc(all, func(i integrations.Record) bool { return i.ID == id })
	if at < 0 {
		return integrations.Record{}, false
	}
	return all[at], true
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	servicetest.Must(t, err)
	return string(text)
}

func TestManagingIntegrationsIsRejected(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	for _, change := range integrationChanges(t, f) {
		t.Run(change.name, func(t *testing.T) {
			id := f.ID("reader")
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
					actor = servicetest.Person(t, f, who)
				}
				record, err := change.do(actor, id)
				if models.CodeOf(err) != code || asJSON(t, record) != asJSON(t, integrations.Record{}) {
					t.Errorf("%s returns %v, %v, want %s", who, record, err, code)
				}
			}
			if row := rowOf(f, id); row != untouched || servicetest.LogOf(f, id) != "" {
				t.Errorf("a rejected change left %s\nbefore %s\nlog: %s", row, untouched, servicetest.LogOf(f, id))
			}
			_, err := change.do(store.Actor{}, id)
			servicetest.WantCode(t, "without an actor", err, models.CodeNotFound)
		})
	}
}

func TestIntegrationsChange(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	f.Exec(`UPDATE integrations SET owners = ARRAY[$1] WHERE id = $2`, f.ID("ivy"), f.ID("roofer"))
	for _, change := range integrationChanges(t, f) {
		t.Run(change.name, func(t *testing.T) {
			for who, key := range map[string]string{"operator": "reader", "ann": "creator", "ivy": "roofer"} {
				if change.operators && who != "operator" {
					continue
				}
				id := f.ID(key)
				if change.before != nil {
					change.before(id)
				}
				actor, logged := store.Operator(), "Millwright "
				if who != "operator" {
					actor = servicetest.Person(t, f, who)
					logged = actor.Name + " " + actor.IdentityID + " "
				}
				want, _ := integration(t, f, id)
				if earlier := servicetest.LogOf(f, id); earlier != "" {
					logged = earlier + "\n" + logged
				}
				others := rowOf(f, f.ID("erp")) + rowOf(f, f.ID("dispatch"))
				got, err := change.do(actor, id)
				servicetest.Must(t, err)
				change.changed(&want)
				want.ClientSecret = got.ClientSecret
				servicetest.Expect(t, who+" gets", asJSON(t, got), asJSON(t, want))
				if renewed := change.action == "integration.secret_renewed"; renewed != strings.HasPrefix(got.ClientSecret, "mwsec_") {
					t.Errorf("the secret shown is %q", got.ClientSecret)
				} else if renewed {
					_, err := f.Access.IssueToken(t.Context(), got.ClientID, got.ClientSecret, nil)
					servicetest.WantCode(t, "a token for the secret that is shown", err, "")
				}
				servicetest.Expect(t, "the log", servicetest.LogOf(f, id), logged+change.action)
				if servicetest.Value[string](f, `SELECT organization_id FROM log_records WHERE record_id = $1 ORDER BY id DESC LIMIT 1`, id) != f.Acme.OrganizationID {
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
	f := servicetest.New(t)
	for _, change := range integrationChanges(t, f) {
		t.Run(change.name, func(t *testing.T) {
			id := f.ID("reader")
			if change.before != nil {
				change.before(id)
			}
			first, err := change.do(store.Operator(), id)
			servicetest.Must(t, err)
			row, log := rowOf(f, id), servicetest.LogOf(f, id)
			again, err := change.do(store.Operator(), id)
			switch {
			case change.action == "integration.deleted":
				if models.CodeOf(err) != models.CodeNotFound {
					t.Errorf("a deleted integration returns %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case change.always:
				if servicetest.LogOf(f, id) != log+"\n"+log[strings.LastIndexByte(log, '\n')+1:] || again.ClientSecret == first.ClientSecret {
					t.Errorf("the second time is no change: %s", servicetest.LogOf(f, id))
				}
				return
			case asJSON(t, again) != asJSON(t, first):
				t.Errorf("answered %s, first %s", asJSON(t, again), asJSON(t, first))
			}
			if rowOf(f, id) != row || servicetest.LogOf(f, id) != log {
				t.Errorf("the second time changed something\n%s\nbefore %s\nlog: %s", rowOf(f, id), row, servicetest.LogOf(f, id))
			}
		})
	}
}

func TestUnknownIntegrationsAreNotFound(t *testing.T) {
	f := servicetest.New(t)
	_, err := f.Integrations.DeleteIntegration(t.Context(), store.Operator(), store.NoKey, f.ID("outsider"))
	servicetest.Must(t, err)
	before := servicetest.Value[int](f, `SELECT count(*) FROM log_records`)
	for what, id := range map[string]string{
		"an id of nothing": "idn_00000000000000000000000001", "a person": f.ID("ann"), "a node": f.ID("hq"), "no id": "erp",
		"nothing": "", "NUL": "idn_\x00", "no UTF-8": "\xff", "a deleted one": f.ID("outsider"),
	} {
		for _, change := range integrationChanges(t, f) {
			if _, err := change.do(store.Operator(), id); models.CodeOf(err) != models.CodeNotFound {
				t.Errorf("%s of %s returns %v", change.name, what, err)
			}
		}
	}
	servicetest.Expect(t, "Log Records after what was not found",
		servicetest.Value[int](f, `SELECT count(*) FROM log_records`), before)
}

func TestRenamesAndScopesAreChecked(t *testing.T) {
	f := servicetest.New(t)
	ann, id := servicetest.Person(t, f, "ann"), f.ID("reader")
	before := rowOf(f, id)
	for _, name := range []string{"", " ", strings.Repeat("x", 201), "a\x1b[2Jb", "\xff"} {
		if _, err := f.Integrations.RenameIntegration(t.Context(), ann, id, name); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("the name %q returns %v", name, err)
		}
	}
	for _, scopes := range [][]string{nil, {""}, {"root"}, {"work_orders:read", "root"}} {
		if _, err := f.Integrations.ChangeIntegrationScopes(t.Context(), ann, id, scopes); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("the scopes %q are answered %v", scopes, err)
		}
	}
	if rowOf(f, id) != before || servicetest.LogOf(f, id) != "" {
		t.Error("a refused change changed something")
	}
}

func TestRenamingAnIntegrationRepositionsItsIdentity(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`CREATE TABLE before AS SELECT changed_xid, changed_at FROM identities WHERE id = $1`, f.ID("reader"))
	_, err := f.Integrations.RenameIntegration(t.Context(), store.Operator(), f.ID("reader"), "Renamed")
	servicetest.Must(t, err)
	// The time of the change increases even if the clock did not move.
	if !servicetest.Value[bool](f, `SELECT i.changed_xid > b.changed_xid AND i.changed_at > b.changed_at FROM identities i, before b WHERE i.id = $1`, f.ID("reader")) {
		t.Error("its identity has the position that it had")
	}
}

func TestIntegrationsAreListedByOrganization(t *testing.T) {
	f := servicetest.New(t)
	names := func(organization string) string {
		all, err := f.Integrations.List(t.Context(), organization)
		servicetest.Must(t, err)
		if !slices.IsSortedFunc(all, func(a, b integrations.Record) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("not oldest first: %s", asJSON(t, all))
		}
		names := servicetest.Each(all, func(i integrations.Record) string { return i.Name })
		return strings.Join(slices.Sorted(slices.Values(names)), ", ")
	}
	for name, test := range map[string]struct{ organization, want string }{
		"all":              {"", "Back office, Creator, Dispatch, ERP, Outsider, Reader, Roofer"},
		"the organization": {f.Acme.OrganizationID, "Creator, ERP, Outsider, Reader, Roofer"},
		"the other":        {f.Polar.OrganizationID, "Back office, Dispatch"},
	} {
		servicetest.Expect(t, name, names(test.organization), test.want)
	}
	for _, organization := range []string{"idn_00000000000000000000000001", f.ID("ann"), "acme"} {
		_, err := f.Integrations.List(t.Context(), organization)
		servicetest.WantCode(t, "integrations of "+organization, err, models.CodeNotFound)
	}
}

func TestDisablingAndTurningOffAreIndependent(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann, operator, id := t.Context(), servicetest.Person(t, f, "ann"), store.Operator(), f.ID("erp")
	usable := func() bool {
		_, err := f.Access.IssueToken(ctx, "cli_erp", "secret-of-the-erp-integration", nil)
		if err != nil && models.CodeOf(err) != models.CodeUnauthorizedClient {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, step := range []struct {
		name   string
		do     func() (integrations.Record, error)
		usable bool
	}{
		{"disabled", func() (integrations.Record, error) {
			return f.Integrations.DisableIntegration(ctx, operator, id)
		}, false},
		{"turned on by a person", func() (integrations.Record, error) {
			return f.Integrations.TurnIntegrationOn(ctx, ann, store.NoKey, id)
		}, false},
		{"turned off by a person", func() (integrations.Record, error) {
			return f.Integrations.TurnIntegrationOff(ctx, ann, store.NoKey, id)
		}, false},
		{"enabled", func() (integrations.Record, error) {
			return f.Integrations.EnableIntegration(ctx, operator, id)
		}, false},
		{"turned on by a person at last", func() (integrations.Record, error) {
			return f.Integrations.TurnIntegrationOn(ctx, ann, store.NoKey, id)
		}, true},
	} {
		servicetest.Must(t, servicetest.ErrorOf(step.do()))
		servicetest.Expect(t, step.name+": it gets tokens", usable(), step.usable)
	}
}

func TestADeletedIntegrationGetsNoWorkAndKeepsItsName(t *testing.T) {
	f := servicetest.New(t)
	ctx, erp, id := t.Context(), f.Actor("erp"), f.ID("erp")
	order := servicetest.Create(t, f)
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, f.ID("crew"), id, f.Acme.OrganizationID)
	f.Exec(`UPDATE permission_definitions SET inventory_manager = true WHERE id = $1`, f.ID("full")) // which the ERP has
	_, err := f.Integrations.DeleteIntegration(ctx, servicetest.Person(t, f, "ann"), store.NoKey, id)
	servicetest.Must(t, err)
	// Its addresses are gone.
	if claimed := servicetest.Claim(t, f, "erp_hook"); claimed.Address.ID != "" {
		t.Errorf("its address claims %v", claimed.Deliveries)
	}
	answer, err := f.Records.CreateWorkOrder(ctx, servicetest.Person(t, f, "ann"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Next"})
	servicetest.Must(t, err)
	servicetest.Expect(t, "deliveries, the first alone",
		servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1`, f.ID("erp_hook")), 1)
	// It gets no new work, neither as an inventory manager nor through its team.
	next := servicetest.Read[struct{ Assignees []string }](t, answer.Body)
	if slices.Contains(next.Assignees, id) {
		t.Error("new work goes to the deleted integration")
	}
	_, err = f.Records.AssignWorkOrder(ctx, servicetest.Person(t, f, "ann"), store.NoKey, answer.RecordID, []string{id}, nil)
	servicetest.WantCode(t, "assigning it", err, models.CodeRuleViolation)
	// Its records keep its name.
	reader := servicetest.Person(t, f, "ann")
	body, err := f.Records.WorkOrder(ctx, reader, order)
	servicetest.Must(t, err)
	type named struct {
		IdentityID string `json:"identity_id"`
		Name       string
	}
	record := servicetest.Read[struct {
		CreatedBy string `json:"created_by"`
		People    []named
	}](t, body)
	if record.CreatedBy != erp.IdentityID || !slices.Contains(record.People, named{id, "ERP"}) {
		t.Errorf("its work order is now %s", body)
	}
	if log := servicetest.LogOf(f, order); !strings.Contains(log, "(API) "+id+" work_order.created") {
		t.Errorf("its Log Record is now %q", log)
	}
}

func TestAnImportCreatesADeletedIntegrationAgain(t *testing.T) {
	f := servicetest.New(t)
	first, err := f.Imports.Run(t.Context(), []byte(servicetest.Small))
	servicetest.Must(t, err)
	old := first.Integrations["erp"]
	_, err = f.Integrations.DeleteIntegration(t.Context(), store.Operator(), store.NoKey, old.IdentityID)
	servicetest.Must(t, err)
	if _, err := f.Imports.Run(t.Context(), []byte(servicetest.Small)); err == nil {
		t.Error("an import creates the deleted integration again unasked")
	}
	second, err := f.Imports.Overwrite(t.Context(), []byte(servicetest.Small))
	servicetest.Must(t, err)
	made := second.Integrations["erp"]
	if made.IdentityID == old.IdentityID || made.ClientID == old.ClientID || made.ClientSecret == "" ||
		made.Webhooks["hook"].ID == old.Webhooks["hook"].ID || second.IDs["below"] != first.IDs["below"] {
		t.Errorf("imported again: %+v, first %+v", made, old)
	}
	servicetest.Expect(t, "addresses of which the import tells",
		servicetest.Value[int](f, `SELECT count(*) FROM webhooks WHERE id = $1 AND integration_id = $2`, made.Webhooks["hook"].ID, made.IdentityID), 1)
}

// Neither logs nor errors contain secrets or e-mail addresses.
func TestManagingIntegrationsLogsNoSecrets(t *testing.T) {
	var log bytes.Buffer
	f := servicetest.New(t, func(o *store.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	ctx := t.Context()
	ann, err := f.Access.PersonActor(ctx, "Ann@acme.example.com")
	servicetest.Must(t, err)
	secrets := []string{"ann@acme.example.com", "secret-of-the-reader-integration"}
	var errs []error
	made, err := f.Integrations.CreateIntegration(ctx, ann, store.NoKey, f.Acme.OrganizationID, newERP("work_orders:read"))
	errs = append(errs, err)
	secrets = append(secrets, made.ClientSecret)
	for _, change := range integrationChanges(t, f) {
		for _, actor := range []store.Actor{ann, store.Operator(), servicetest.Person(t, f, "bob"), f.Actor("erp")} {
			record, err := change.do(actor, f.ID("reader"))
			errs = append(errs, err)
			if record.ClientSecret != "" {
				secrets = append(secrets, record.ClientSecret)
			}
		}
	}
	_, err = f.Access.PersonActor(ctx, "stranger@acme.example.com\xff")
	servicetest.WantCode(t, "a reference that is no text", err, models.CodeNotFound)
	_, err = f.Access.PersonActor(ctx, "stranger@acme.example.com")
	errs = append(errs, err, f.Inventory.Assign(ctx, ann, store.NoKey, f.ID("hq"), "ann@acme.example.com", "x"))
	secrets = append(secrets, "stranger@acme.example.com")
	rows := servicetest.Value[string](f, `SELECT coalesce(string_agg(l::text, E'\n'), '') FROM log_records l`)
	said := strings.ToLower(log.String() + fmt.Sprint(errs) + rows)
	for _, secret := range secrets {
		if strings.Contains(said, strings.ToLower(secret)) {
			t.Errorf("%q is in\n%s", secret, said)
		}
	}
}
