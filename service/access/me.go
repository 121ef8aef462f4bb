package access

import "millwright/models"

// Me is the response of GET /me.
type Me struct {
	Integration  MeNamed       `json:"integration" doc:"The integration."`
	IdentityID   string        `json:"identity_id" doc:"The integration's identity id, as data.actor of events names it." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Organization MeOrg         `json:"organization" doc:"The organization the integration belongs to."`
	Scopes       models.Scopes `json:"scopes" nullable:"false" uniqueItems:"true" doc:"The token's scopes."`
	RateLimit    MeRate        `json:"rate_limit" doc:"How many calls the plan allows."`
	Plan         string        `json:"plan" doc:"Name of the organization's plan." example:"pro"`
}

// MeNamed is an integration by id and name.
type MeNamed struct {
	ID   string `json:"id" doc:"Identifier." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Name string `json:"name" doc:"Name." example:"ERP"`
}

// MeOrg is the organization of the integration.
type MeOrg struct {
	ID       string `json:"id" doc:"Identifier." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3ta"`
	Name     string `json:"name" doc:"Name." example:"Acme Facilities"`
	ReadOnly bool   `json:"read_only" doc:"Whether creating and changing work orders is rejected."`
}

// MeRate is the integration's call limit.
type MeRate struct {
	Limit         int `json:"limit" doc:"Calls in a window." example:"600"`
	WindowSeconds int `json:"window_seconds" doc:"Length of a window in seconds." example:"60"`
}

// Me returns the response of GET /me from what the admission of the call has read.
func (c Caller) Me(rate Rate) Me {
	return Me{
		Integration:  MeNamed{ID: c.IdentityID, Name: c.Name},
		IdentityID:   c.IdentityID,
		Organization: MeOrg{ID: c.OrganizationID, Name: c.OrganizationName, ReadOnly: c.ReadOnly},
		Scopes:       c.Scopes,
		RateLimit:    MeRate{Limit: rate.Limit, WindowSeconds: int(models.RateWindow.Seconds())},
		Plan:         c.PlanName,
	}
}
