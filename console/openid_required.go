package console

import (
	"github.com/gin-gonic/gin"

	"millwright/models"
)

func (c *Console) openIDRequiredRoutes(pages *gin.RouterGroup) {
	pages.GET("/people/openid", c.recent(shows(c.renderOpenIDRequired)))
	pages.POST("/people/openid", c.recent(c.setOpenIDRequired))
}

// renderOpenIDRequired states what requiring OpenID Connect does, or lifting that, with a form that
// was rejected or nil.
func (c *Console) renderOpenIDRequired(r *request, status int, rejected *form) error {
	found, err := c.service.People.OpenIDRequirementForPerson(r.ctx(), r.actor(), c.provider.Issuer)
	if err != nil {
		return err
	}
	view := confirmView{Back: Root + "/people", Form: newForm(nil).orRejected(rejected)}
	provider, organization := c.provider.Name, r.viewer.OrganizationName
	switch {
	case found.Required:
		view.Title, view.Button, view.Action = "Let the people of "+organization+" sign in with passwords again?", "Allow passwords", linkTo("/people/openid", "required", "no")
		view.Effects = []string{"Passwords work again, including old ones.", "Administrators get a notice."}
	case c.openID == nil:
		view.Title, view.Effects = "No OpenID Connect provider", []string{"This installation has no OpenID Connect provider, so no one could sign in. Its operator can set one."}
	case !found.Linked:
		view.Title, view.Effects = "Require "+provider+"?", []string{"You have no linked account of " + provider + " yourself, and could not sign in any longer. Link one first."}
	default:
		view.Title, view.Button, view.Action = "Require "+provider+" for the people of "+organization+"?", "Require "+provider, linkTo("/people/openid", "required", "yes")
		view.Effects = []string{
			"People sign in with " + provider + " only. Passwords and links for forgotten passwords let no one in.",
			counted(found.Sessions, "session that began in another way ends", "sessions that began in another way end") + " at the next request.",
		}
		if found.Unlinked > 0 {
			view.Effects = append(view.Effects, counted(found.Unlinked, "person has no linked account and cannot", "people have no linked account and cannot")+
				" sign in. An invitation lets them link one.")
		}
		view.Effects = append(view.Effects, "Administrators get a notice. If no one can sign in any longer, an operator's command lifts this.")
	}
	return confirmPage.render(r, status, view)
}

func (c *Console) setOpenIDRequired(r *request) error {
	page := outcome{to: Root + "/people", again: c.renderOpenIDRequired}
	switch r.Query("required") {
	case "yes":
		page.done = "openid-required"
		return r.submit(page, func(f form) error {
			return c.service.People.RequireOpenID(r.ctx(), r.actor(), f.key(r), r.viewer.OrganizationID, c.provider.Issuer)
		})
	case "no":
		page.done = "openid-lifted"
		return r.submit(page, func(f form) error {
			return c.service.People.LiftOpenID(r.ctx(), r.actor(), f.key(r), r.viewer.OrganizationID)
		})
	}
	return models.Errorf(models.CodeInvalidRequest, "The required parameter must be yes or no.")
}
