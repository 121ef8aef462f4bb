package console

import (
	"context"
	"strconv"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// commentsService is what the handlers of this file call.
type commentsService interface {
	AddComment(ctx context.Context, actor store.Actor, recordID, text string) error
	CommentToRemove(ctx context.Context, actor store.Actor, id string) (models.Comment, error)
	RemoveComment(ctx context.Context, actor store.Actor, id string) error
}

func (c *Console) commentRoutes(pages *gin.RouterGroup) {
	for record, page := range map[string]func(*request, int, *form) error{"/work-orders/:id": c.renderWorkOrder, "/feedback/:id": c.renderFeedback} {
		pages.POST(record+"/comments", c.addComment(page))
		pages.GET(record+"/remove-comment", c.signedIn(c.confirmRemoval))
		pages.POST(record+"/remove-comment", c.signedIn(c.removeComment))
	}
}

// historyView is a part of a record's history, with a form to comment on the record.
type historyView struct {
	// Page is the record's.
	Page  string
	Lines []changeLine
	Pager pager
	Form  form
	// Moderates is true if the person may remove comments.
	Moderates bool
	// Unread is true if the person has unread notices: those about the record are read now.
	Unread bool
}

// historyView shows a part of the history of an organization's record, without the form.
func (r *request) historyView(page, organizationID string, history records.HistoryPage, known historyWords) historyView {
	view := historyView{
		Page: page, Lines: r.changeLines(history.Changes, known),
		Moderates: r.viewer.Admin && organizationID == r.viewer.OrganizationID, Unread: r.viewer.UnreadNotices > 0,
	}
	if r.historyBefore() > 0 {
		view.Pager.Newer = page + "#history"
	}
	if history.Next != 0 {
		view.Pager.Older = page + "?before=" + strconv.FormatInt(history.Next, 10) + "#history"
	}
	return view
}

// historyBefore is the position in the history that the URL asks for, 0 for its beginning.
func (r *request) historyBefore() int64 {
	before, _ := strconv.ParseInt(r.Query("before"), 10, 64)
	return max(before, 0)
}

// commentForm returns the form of a comment. If it is the form that was rejected, other is nil.
func commentForm(rejected *form) (comment form, other *form) {
	comment = newForm(nil)
	if rejected == nil || !rejected.Values.Has("text") {
		return comment, rejected
	}
	return comment.orRejected(rejected), nil
}

// commentedURL is the URL of the history of a work order or feedback.
func commentedURL(recordID string) string {
	if models.IsID(recordID, models.PrefixFeedback) {
		return feedbackURL(recordID) + "#history"
	}
	return workOrderURL(recordID) + "#history"
}

// addComment comments on a record, whose page shows a comment that is rejected again.
func (c *Console) addComment(page func(*request, int, *form) error) gin.HandlerFunc {
	return c.signedIn(func(r *request) error {
		id := r.Param("id")
		after := outcome{to: commentedURL(id), done: "commented", again: func(status int, f form) error {
			f.Values.Set("text", f.Values.Get("text")) // by which commentForm knows the form
			return page(r, status, &f)
		}}
		return r.submit(after, func(ctx context.Context, f form) error {
			return c.service.AddComment(ctx, r.actor(), id, f.Value("text"))
		})
	})
}

// commentToRemove returns the comment of the query, which is on the record of the path.
func (r *request) commentToRemove() (models.Comment, error) {
	comment, err := r.console.service.CommentToRemove(r.ctx(), r.actor(), r.Query("comment"))
	if err == nil && comment.RecordID != r.Param("id") {
		err = errNotFound()
	}
	return comment, err
}

func (c *Console) confirmRemoval(r *request) error {
	comment, err := r.commentToRemove()
	if err != nil {
		return err
	}
	view := confirmView{
		Title: "Remove this comment?", Back: commentedURL(comment.RecordID), BackText: "Keep it", Action: linkTo(r.path(), "comment", comment.ID),
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
	return r.submit(outcome{to: commentedURL(comment.RecordID), done: "comment-removed"}, func(ctx context.Context, _ form) error {
		return c.service.RemoveComment(ctx, r.actor(), comment.ID)
	})
}
