package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/imports"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// nameWrites are the ways to give a person, a team or an integration a name, but imports.
func nameWrites(s *servicetest.Harness) map[string]func(name string) error {
	ctx, ann, org := s.T.Context(), s.As("ann"), s.Acme.OrganizationID
	team, err := s.People.CreateTeam(ctx, ann, store.NoKey, org, "Roofers")
	servicetest.Must(s.T, err)
	n := 0
	invite := func(as store.Actor, name string) (people.LinkEmail, error) {
		n++
		_, link, err := s.People.InvitePerson(ctx, as, store.NoKey, org, people.Invitation{Email: fmt.Sprintf("new%d@acme.example.com", n), Name: name})
		return link, err
	}
	return map[string]func(name string) error{
		"one's own": func(name string) error {
			return s.People.ChangeProfile(ctx, s.As("bob"), store.NoKey, people.Profile{Name: name})
		},
		"an invitation":              func(name string) error { _, err := invite(ann, name); return err },
		"an invitation of a command": func(name string) error { _, err := invite(store.Operator(), name); return err },
		"an invitation that is taken": func(name string) error {
			link, err := invite(ann, "Nia Hill")
			if err != nil {
				return err
			}
			_, err = s.People.UseLink(ctx, people.LinkUse{Token: link.Token, Name: name, Password: "a long enough password"})
			return err
		},
		"a new team": func(name string) error { _, err := s.People.CreateTeam(ctx, ann, store.NoKey, org, name); return err },
		"a team": func(name string) error {
			_, err := s.People.RenameTeam(ctx, ann, store.NoKey, team.ID, name)
			return err
		},
		"a new integration": func(name string) error {
			_, err := s.Integrations.CreateIntegration(ctx, ann, store.NoKey, org, integrations.NewIntegration{Name: name, Scopes: []string{"work_orders:read"}})
			return err
		},
		"an integration": func(name string) error {
			_, err := s.Integrations.RenameIntegration(ctx, ann, s.ID("erp"), name)
			return err
		},
		"an integration of a command": func(name string) error {
			_, err := s.Integrations.RenameIntegration(ctx, store.Operator(), s.ID("erp"), name)
			return err
		},
	}
}

// No one takes a name under which the log would show someone else, in any way to give a name
// (api.md 1.5).
func TestNoOneIsNamedAsAnotherActor(t *testing.T) {
	s := servicetest.NewHarness(t)
	for way, give := range nameWrites(s) {
		for _, name := range []string{"Jonas Lindqvist (operator)", "ERP (API)", "Millwright", "I\u200bmport"} {
			err := give(name)
			rejected, ok := errors.AsType[*models.Error](err)
			if !ok || rejected.Code != models.CodeValidationFailed || len(rejected.Fields) != 1 || rejected.Fields[0].Pointer != "/name" || rejected.Fields[0].Code != "reserved" {
				t.Errorf("%s, %q: %v", way, name, err)
			}
		}
		if err := give("Jonas Lindqvist"); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
	for entry, kind := range map[string]string{
		"people: [{key: jonas, name: %q, email: jonas@acme.example.com}]": "person", "people: [{key: bob, name: %q, email: bob@acme.example.com}]": "person",
		"teams: [{key: crew, name: %q}]": "team", "integrations: [{key: cafm, name: %q, scopes: [\"work_orders:read\"]}]": "integration",
	} {
		for _, name := range []string{"Jonas Lindqvist (operator)", "Millwright"} {
			_, err := s.Imports.Run(t.Context(), []byte("organization: {key: acme}\n"+fmt.Sprintf(entry, name)))
			problems, ok := errors.AsType[*imports.FileError](err)
			if !ok || !strings.Contains(problems.Error(), kind) || !strings.Contains(problems.Error(), models.ReservedNameRule) {
				t.Errorf("an import of the %s %q: %v", kind, name, err)
			}
		}
	}
	for _, name := range servicetest.Value[[]string](s.Fixture, `SELECT array_agg(name) FROM identities`) {
		if models.IsReservedName(name) {
			t.Errorf("someone is named %q", name)
		}
	}
}

// An invitation without a name makes one of the e-mail address that is not reserved.
func TestNamesMadeOfAddressesAreNotReserved(t *testing.T) {
	f := servicetest.New(t)
	for email, want := range map[string]string{"nia@acme.example.com": "nia", "Import@acme.example.com": "Import@acme.example.com", "millwright@acme.example.com": "millwright@acme.example.com"} {
		invited, _, err := f.People.InvitePerson(t.Context(), store.Operator(), store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: email})
		if err != nil || invited.Name != want {
			t.Errorf("%s is invited as %q, %v", email, invited.Name, err)
		}
	}
}
