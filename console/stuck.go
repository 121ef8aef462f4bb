package console

import (
	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/pages"
)

func (c *Console) stuckRoutes(group *gin.RouterGroup) {
	group.GET("/stuck", c.signedIn(requires(models.GrantIntegrations, c.showStuck)))
}

// stuckView is what is stuck. Start loads it for people who manage integrations.
type stuckView struct {
	Addresses []stuckAddressRow
	Records   []stuckRow
	Mail      []stuckRow
	// Short is true if Start has room for it.
	Short bool
}

type stuckAddressRow struct {
	URL, Page, Integration, Reason string
	Since                          moment
	// State is Failing or Off; its Text is "" if the address works.
	State stateMark
	// Deliveries are those that have not arrived, by status.
	Deliveries []countRow
}

// stuckRow is a record or a mail; URL is its page, "" if the person may not open it.
type stuckRow struct {
	Text, URL, Why string
	Since          moment
}

var stuckPage = newPage[stuckView]("stuck.html")

func (c *Console) showStuck(r *request) error {
	found, err := c.service.Pages.StuckForPerson(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	ids := stringsOf(found.Records, func(s pages.StuckRecord) string { return s.RecordID })
	for _, mail := range found.Mail {
		ids = append(ids, mail.PersonID)
	}
	urls, err := r.recordURLs(ids)
	if err != nil {
		return err
	}
	var view stuckView
	for _, a := range found.Addresses {
		view.Addresses = append(view.Addresses, r.stuckAddressRow(a))
	}
	for _, s := range found.Records {
		view.Records = append(view.Records, stuckRow{Text: s.RecordID, URL: urls[s.RecordID], Since: r.moment(s.Since)})
	}
	for _, mail := range found.Mail {
		text := plural(mail.Count, "notice", "notices")
		if mail.Kind == "link" {
			text = "A sign-in link"
		}
		view.Mail = append(view.Mail, stuckRow{
			Text: text, URL: urls[mail.PersonID], Since: r.moment(mail.Since), Why: plural(mail.Attempts, "attempt", "attempts") + ": " + visible(valueOf(mail.Reason)),
		})
	}
	view.Short = len(view.Addresses)+len(view.Records)+len(view.Mail) <= 3
	return stuckPage.fragment(r, view)
}

func (r *request) stuckAddressRow(a pages.StuckAddress) stuckAddressRow {
	row := stuckAddressRow{URL: a.URL, Page: webhookURL(a.WebhookID), Integration: a.Integration, Since: r.optionalMoment(a.Since), Deliveries: countRows(a.WebhookID, a.Failed, a.Retrying, a.Held, a.Pending)}
	switch {
	case !a.Enabled:
		row.Reason, row.State = a.Reason, stateMark{"bad", "off", "Off"}
	case a.Since != nil:
		row.Reason, row.State = answerText(a.LastStatus, a.LastError), stateMark{"bad", "warn", "Failing"}
	}
	return row
}
