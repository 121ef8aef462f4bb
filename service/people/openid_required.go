package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// OpenIDRequirement is whether the people of an organization have to sign in with OpenID
// Connect, and what requiring it does.
type OpenIDRequirement struct {
	Required bool
	// Linked is whether the actor has an account of the provider.
	Linked bool
	// Sessions are those that would end, Unlinked the people who could not sign in until a link
	// lets them link an account. Both are counted up to models.MaxCounted.
	Sessions, Unlinked int
}

// OpenIDRequirementForPerson returns what an administrator decides about. issuer is the provider's.
// Errors: permission_denied, unavailable.
func (s *People) OpenIDRequirementForPerson(ctx context.Context, actor store.Actor, issuer string) (OpenIDRequirement, error) {
	found, err := store.FindOne[struct {
		OpenIDRequirement
		Admin bool
	}](ctx, s.Store, actor.OrganizationID, errOnlyAdministratorsRequire(), `
		SELECT a.admin, o.openid_required AS required,
			EXISTS (SELECT FROM openid_accounts WHERE person_id = a.id AND issuer = @issuer) AS linked,
			(SELECT count(*) FROM (SELECT FROM sessions s JOIN people p ON p.id = s.person_id
				WHERE p.organization_id = o.id AND s.method <> 'openid' LIMIT @most) x) AS sessions,
			(SELECT count(*) FROM (SELECT FROM people p WHERE p.organization_id = o.id AND p.deactivated_at IS NULL
				AND NOT EXISTS (SELECT FROM openid_accounts WHERE person_id = p.id AND issuer = @issuer) LIMIT @most) x) AS unlinked
		FROM people a JOIN organizations o ON o.id = a.organization_id WHERE a.id = @actor`,
		pgx.NamedArgs{"issuer": issuer, "actor": actor.IdentityID, "most": models.MaxCounted})
	if err == nil && !found.Admin {
		err = errOnlyAdministratorsRequire()
	}
	if err != nil {
		return OpenIDRequirement{}, err
	}
	return found.OpenIDRequirement, nil
}

func errOnlyAdministratorsRequire() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators decide how the people of the organization sign in.")
}

func errOpenIDRequired() error {
	return models.Errorf(models.CodeRuleViolation, "The organization requires OpenID Connect: people do not sign in with passwords.")
}

// RequireOpenID lets the people of an organization sign in only with OpenID Connect: sessions
// that began otherwise and links for forgotten passwords end. An administrator needs an account
// of the provider; for an operator some administrator does, so that someone can sign in. issuer
// is the provider's, "" without a provider. Errors: not_found, permission_denied, rule_violation,
// unavailable.
func (s *People) RequireOpenID(ctx context.Context, actor store.Actor, key store.Key, organizationID, issuer string) error {
	return s.setOpenIDRequired(ctx, actor, key, organizationID, true, func(t *store.Tx) error {
		if issuer == "" {
			return models.Errorf(models.CodeRuleViolation, "No OpenID Connect provider is configured.")
		}
		linked, err := store.ScanOne[bool](t, nil, `
			SELECT EXISTS (SELECT FROM people p JOIN openid_accounts a ON a.person_id = p.id
				WHERE p.organization_id = @organization AND p.admin AND p.deactivated_at IS NULL AND a.issuer = @issuer AND (@operator OR p.id = @actor))`,
			map[string]any{"organization": organizationID, "issuer": issuer, "operator": actor.IsOperator(), "actor": actor.IdentityID})
		if err == nil && !linked {
			who := "You have"
			if actor.IsOperator() {
				who = "The administrators have"
			}
			err = models.Errorf(models.CodeRuleViolation, "%s no linked account of the OpenID Connect provider, and could not sign in any longer.", who)
		}
		if err != nil {
			return err
		}
		if err := t.Exec(`DELETE FROM sessions s USING people p WHERE p.id = s.person_id AND p.organization_id = ? AND s.method <> 'openid'`, organizationID); err != nil {
			return err
		}
		return t.Exec(`DELETE FROM sign_in_links l USING people p WHERE p.id = l.person_id AND p.organization_id = ? AND l.kind = 'reset'`, organizationID)
	})
}

// LiftOpenID undoes RequireOpenID: passwords work again. Errors: not_found, permission_denied,
// unavailable.
func (s *People) LiftOpenID(ctx context.Context, actor store.Actor, key store.Key, organizationID string) error {
	return s.setOpenIDRequired(ctx, actor, key, organizationID, false, func(*store.Tx) error { return nil })
}

// setOpenIDRequired changes the requirement, unless it is so already, with what change does.
func (s *People) setOpenIDRequired(ctx context.Context, actor store.Actor, key store.Key, organizationID string, required bool, change func(*store.Tx) error) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		o, err := lockOrganization(t, actor, organizationID) // sessions that begin at the same time wait
		if err != nil {
			return err
		}
		if !o.Admin {
			return errOnlyAdministratorsRequire()
		}
		if o.OpenIDRequired == required {
			return nil
		}
		// Not by models.Organization, whose columns imports write.
		if err := t.Exec(`UPDATE organizations SET openid_required = ? WHERE id = ?`, required, o.ID); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		kind := models.NoticeOpenIDLifted
		if required {
			kind = models.NoticeOpenIDRequired
		}
		return logSecurity(t, actor, o.ID, string(kind), kind, o.ID)
	})
}
