package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) commentRoutes(pages *gin.RouterGroup) {
	for record, page := range map[string]formHandler{"/work-orders/:id": c.renderWorkOrder, "/feedback/:id": c.renderFeedback} {
		pages.POST(record+"/comments", c.addComment(page))
		pages.GET(record+"/remove-comment", c.signedIn(c.confirmRemoval))
		pages.POST(record+"/remove-comment", c.signedIn(c.removeComment))
	}
}

// activityView is a part of a record's history, oldest first, with a form to comment on the record.
type activityView struct {
	// Page is the record's.
	Page  string
	Lines []changeLine
	// Earlier and Newest link to other parts.
	Earlier, Newest string
	Form            form
	// Moderates is true if the person may remove comments.
	Moderates bool
	// Unread is true if the person has unread notices: those about the record are read now.
	Unread bool
}

// activityView shows a part of the history of an organization's record, without the form.
func (r *request) activityView(page, organizationID string, history records.HistoryPage, known historyWords) activityView {
	view := activityView{
		Page: page, Lines: r.changeLines(history.Changes, known),
		Moderates: r.viewer.Admin && organizationID == r.viewer.OrganizationID, Unread: r.viewer.UnreadNotices > 0,
	}
	slices.Reverse(view.Lines)
	if r.historyBefore() != 0 {
		view.Newest = page + activityAnchor
	} else if n := len(view.Lines); n > 0 {
		view.Lines[n-1].Last = true
	}
	if history.Next != 0 {
		view.Earlier = linkTo(strings.TrimPrefix(page, Root), "before", position(history.Next)) + activityAnchor
	}
	return view
}

// historyBefore is the change of the URL before which the history is shown, 0 for the latest part.
func (r *request) historyBefore() int64 {
	before, _ := strconv.ParseInt(r.Query("before"), 10, 64)
	return max(before, 0)
}

// activityAnchor is where a page shows its activity, latestAnchor its last line.
const activityAnchor, latestAnchor = "#activity", "#latest"

// commentForm returns the form of a comment. If it is the form that was rejected, other is nil.
func commentForm(rejected *form) (comment form, other *form) {
	comment = newForm(nil)
	if rejected == nil || !rejected.Values.Has("text") {
		return comment, rejected
	}
	return comment.orRejected(rejected), nil
}

// commentedURL is the URL of a work order or feedback.
func commentedURL(recordID string) string {
	if models.IsID(recordID, models.PrefixFeedback) {
		return feedbackURL(recordID)
	}
	return workOrderURL(recordID)
}

// addComment comments on a record, whose page shows a comment that is rejected again.
func (c *Console) addComment(page formHandler) gin.HandlerFunc {
	return c.signedIn(func(r *request) error {
		id := r.Param("id")
		after := outcome{to: commentedURL(id) + latestAnchor, done: "commented", again: func(r *request, status int, f *form) error {
			f.Values.Set("text", f.Values.Get("text")) // by which commentForm knows the form
			return page(r, status, f)
		}}
		return r.submit(after, func(f form) error {
			return c.service.Records.AddComment(r.ctx(), r.actor(), f.key(r), id, f.Value("text"))
		})
	})
}

// commentToRemove returns the comment of the query, which is on the record of the path.
func (r *request) commentToRemove() (models.Comment, error) {
	comment, err := r.console.service.Records.CommentToRemove(r.ctx(), r.actor(), r.Query("comment"))
	if err == nil && comment.RecordID != r.Param("id") {
		err = models.NotFound()
	}
	return comment, err
}

func (c *Console) confirmRemoval(r *request) error {
	comment, err := r.commentToRemove()
	if err != nil {
		return err
	}
	view := confirmView{
		Title: "Remove this comment?", Back: commentedURL(comment.RecordID) + activityAnchor, BackText: "Keep it", Action: linkTo(r.path(), "comment", comment.ID),
		Effects: []string{"An administrator has removed it already."},
	}
	if comment.Text != nil {
		view.Button = "Remove the comment"
		view.Effects = []string{
			"It is: “" + models.Shorten(*comment.Text) + "”",
			"Its text is deleted for everyone and cannot be restored.",
			"The history still shows who commented and when, and that an administrator removed it. The log shows that it was you.",
		}
	}
	return r.confirm(view)
}

func (c *Console) removeComment(r *request) error {
	comment, err := r.commentToRemove()
	if err != nil {
		return err
	}
	return r.submit(outcome{to: commentedURL(comment.RecordID) + activityAnchor, done: "comment-removed"}, func(f form) error {
		return c.service.Records.RemoveComment(r.ctx(), r.actor(), f.key(r), comment.ID)
	})
}
