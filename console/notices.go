package console

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/people"
)

func (c *Console) noticeRoutes(pages *gin.RouterGroup) {
	pages.GET("/notices", c.signedIn(c.listNotices))
	pages.GET("/notices/count", c.polled(c.countNotices))
	pages.POST("/notices/read", c.signedIn(c.readNotices))
	pages.POST("/notices/:id/open", c.signedIn(c.openNotice))
	for _, record := range []string{"/work-orders/:id", "/feedback/:id"} {
		pages.POST(record+"/seen", c.signedIn(c.readNoticesAbout))
	}
}

// noticesView is a person's inbox: unread notices, then those that were read.
type noticesView struct {
	Unread, Read           []noticeRow
	UnreadPager, ReadPager pager
	// Last is the newest notice that is shown: marking all read stops there.
	Last int64
}

type noticeRow struct {
	ID                  int64
	Text, About, Reason string
	At                  moment
	// Opens is true if opening the notice opens its record.
	Opens, Read bool
}

var noticesPage = newPage[noticesView]("notices.html")

// noticeTexts describe the events that notices are about.
var noticeTexts = map[models.NoticeKind]string{
	models.NoticeAssigned: "was assigned to you or your team", models.NoticeConsulted: "has you or your team as consultant",
	models.NoticeUnassigned: "is no longer yours", models.NoticeReturned: "was returned by a service company", models.NoticeStarted: "is in progress", models.NoticeUpdated: "was changed", models.NoticeCompleted: "is complete", models.NoticeReviewWanted: "waits for your review", models.NoticeInReview: "is done and waits for its review",
	models.NoticeSentBack: "was sent back", models.NoticeCancelled: "was cancelled", models.NoticeHeld: "was put on hold",
	models.NoticeResumed: "was resumed", models.NoticeDueSoon: "is due within a day", models.NoticeDue: "is due now",
	models.NoticeReviewWaits: "still waits for your review", models.NoticeReviewOverdue: "waits too long for its review",
	models.NoticeNoOneCan:       "has no one who can do it",
	models.NoticeCommented:      "has a new comment",
	models.NoticeFeedbackOpened: "was opened", models.NoticeFeedbackResolved: "was resolved", models.NoticeFeedbackComment: "has a new comment",
	models.NoticeWebhookFailing: "has been failing for a day", models.NoticeWebhookOff: "was turned off after a final failure",
	models.NoticeWebhookSecretRenewed: "has a new signing secret",
	// Those about identities and operators are whole sentences.
	models.NoticeOperated:    "An operator of the service acted as you",
	models.NoticeRoleChanged: "A person's role was changed", models.NoticeSignInAdded: "A person has a new way to sign in",
	models.NoticeSignInRemoved: "Ways to sign in were removed from a person", models.NoticePasswordChanged: "A person's password was changed",
	models.NoticeEmailChanged: "A person's e-mail address was changed", models.NoticeSecretRenewed: "An integration's secret was renewed",
	models.NoticeOwnersChanged:  "An integration's owners were changed",
	models.NoticeOwnerLost:      "An integration lost an owner, who may know its secret: renew it",
	models.NoticeTeamAccess:     "Someone joined a team that has permissions in the inventory",
	models.NoticeAccessChanged:  "Roles, secrets or ways to sign in were changed",
	models.NoticeOpenIDRequired: "People have to sign in with OpenID Connect from now on",
	models.NoticeOpenIDLifted:   "People no longer have to sign in with OpenID Connect",
}

func (r *request) noticeRow(n people.NoticeView) noticeRow {
	subject := "Feedback "
	switch {
	case models.IsID(n.RecordID, models.PrefixIdentity), n.Kind == models.NoticeOperated:
		subject = ""
	case models.IsID(n.RecordID, models.PrefixWebhook):
		subject = "A webhook address "
	case n.Number != nil:
		subject = fmt.Sprintf("Work order %d ", *n.Number)
	case models.IsID(n.RecordID, models.PrefixWorkOrder):
		subject = "A work order "
	}
	text, known := noticeTexts[n.Kind]
	if !known {
		text = words(string(n.Kind))
	}
	row := noticeRow{ID: n.ID, Text: subject + text, About: n.Title, Reason: n.Reason, At: r.moment(n.CreatedAt), Opens: n.Readable, Read: n.ReadAt != nil}
	if !n.Readable {
		row.About = "You may not read what this is about."
	}
	return row
}

func (c *Console) listNotices(r *request) error {
	var view noticesView
	for _, list := range []struct {
		read      bool
		parameter string
		rows      *[]noticeRow
		pager     *pager
	}{{false, "unread_before", &view.Unread, &view.UnreadPager}, {true, "read_before", &view.Read, &view.ReadPager}} {
		before, _ := strconv.ParseInt(r.Query(list.parameter), 10, 64)
		found, err := c.service.People.Notices(r.ctx(), r.actor(), people.NoticeFilter{Read: list.read, Before: before, Limit: models.DefaultPageSize + 1})
		if err != nil {
			return err
		}
		if len(found) > models.DefaultPageSize {
			found = found[:models.DefaultPageSize]
			list.pager.Older = linkTo("/notices", list.parameter, strconv.FormatInt(found[len(found)-1].ID, 10))
		}
		if before != 0 {
			list.pager.Newer = linkTo("/notices")
		}
		for _, n := range found {
			*list.rows = append(*list.rows, r.noticeRow(n))
		}
	}
	if len(view.Unread) > 0 {
		view.Last = view.Unread[0].ID
	}
	return noticesPage.show(r, view)
}

// countNotices responds with the count of unread notices, which pages load again and again.
func (c *Console) countNotices(r *request) error {
	return r.sendPage(http.StatusOK, func(body io.Writer) error {
		return noticesPage.template().ExecuteTemplate(body, "count", r.viewer.UnreadNotices)
	})
}

// openNotice marks a notice read and shows its record.
func (c *Console) openNotice(r *request) error {
	id, err := strconv.ParseInt(r.Param("id"), 10, 64)
	if err != nil {
		return models.NotFound()
	}
	record, err := c.service.People.ReadNotice(r.ctx(), r.actor(), id)
	if err != nil {
		return err
	}
	if record == r.viewer.OrganizationID {
		return r.done(Root+"/people", "")
	}
	urls, err := r.recordURLs([]string{record})
	if err != nil {
		return err
	}
	if to := urls[record]; to != "" {
		return r.done(to, "")
	}
	return r.done(Root+"/notices", "read")
}

func (c *Console) readNotices(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	last, err := strconv.ParseInt(f.Value("last"), 10, 64)
	if err != nil {
		return models.NotFound()
	}
	if err := c.service.People.ReadNotices(r.ctx(), r.actor(), last); err != nil {
		return err
	}
	return r.done(Root+"/notices", "read")
}

// readNoticesAbout marks the notices about a record read whose page the person has opened. The
// page's script asks for it: opening a page with GET changes no data.
func (c *Console) readNoticesAbout(r *request) error {
	if err := c.service.People.ReadNoticesAbout(r.ctx(), r.actor(), r.Param("id")); err != nil {
		return err
	}
	r.Data(http.StatusOK, "text/html; charset=utf-8", nil)
	return nil
}
