package people_test

import (
	"errors"
	"testing"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A person who signs in with a password while the organization begins to require OpenID Connect does
// not keep the session: the sign-in waits and fails, or the requirement waits and ends it.
func TestRequiringOpenIDDuringASignIn(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("ann"))
	f.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'ann', $1, now())`, f.ID("ann"))
	sessions := func() int { return servicetest.Value[int](f, `SELECT count(*)::integer FROM sessions`) }
	require := func() error {
		return f.People.RequireOpenID(t.Context(), store.Operator(), store.NoKey, f.Acme.OrganizationID, "https://login.example.com")
	}

	tx := servicetest.Begin(t, f)
	servicetest.ExecIn(t, tx, `UPDATE organizations SET openid_required = true WHERE id = $1`, f.Acme.OrganizationID)
	signedIn := make(chan error, 1)
	go func() {
		_, err := signIn(t, f, "ann@acme.example.com", password)
		signedIn <- err
	}()
	servicetest.AwaitLocks(t, f, 1) // of the sign-in
	servicetest.Must(t, tx.Commit(t.Context()))
	if err := <-signedIn; !errors.Is(err, people.ErrSignInFailed) || sessions() > 0 {
		t.Errorf("the sign-in that waited: %v, %d sessions", err, sessions())
	}

	f.Exec(`UPDATE organizations SET openid_required = false WHERE id = $1`, f.Acme.OrganizationID)
	servicetest.Must(t, servicetest.ErrorOf(signIn(t, f, "ann@acme.example.com", password)))
	tx = servicetest.Begin(t, f)
	// What a sign-in that is not committed yet has done.
	servicetest.ExecIn(t, tx, `SELECT FROM people p JOIN organizations o ON o.id = p.organization_id WHERE p.id = $1 FOR SHARE`, f.ID("ann"))
	servicetest.ExecIn(t, tx, `INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent)
		VALUES (sha256('other'), 'ses_other', $1, $2, now(), now(), '192.0.2.1', '')`, f.ID("ann"), models.SignedInByPassword)
	required := make(chan error, 1)
	go func() { required <- require() }()
	servicetest.AwaitLocks(t, f, 1) // of the requirement
	servicetest.Must(t, tx.Commit(t.Context()))
	if err := <-required; err != nil || sessions() > 0 {
		t.Errorf("the requirement: %v, %d sessions remain", err, sessions())
	}
}

// Someone with a linked account needs no link where OpenID Connect is required: a password that
// it set would not be accepted.
func TestNoResetLinksWhereOpenIDIsRequired(t *testing.T) {
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	f.Exec(`UPDATE organizations SET openid_required = true WHERE id = $1`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'bob', $1, now())`, f.ID("bob"))
	_, err := f.People.NewPersonLink(t.Context(), ann, store.NoKey, f.ID("bob"), false)
	servicetest.WantCode(t, "with a linked account", err, models.CodeRuleViolation)
	setPassword(t, f, "eve")
	if link, err := f.People.NewPersonLink(t.Context(), ann, store.NoKey, f.ID("eve"), false); err != nil || link.Kind != models.LinkInvitation {
		t.Errorf("with a password alone: %v, %v; want an invitation", link.Kind, err)
	}
}
