package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/store"
	"millwright/web"
)

var (
	errMalformed = models.Errorf(models.CodeInvalidRequest, "The address of the page is malformed.")
	errMethod    = models.Errorf(models.CodeMethodNotAllowed, "This page cannot be used in this way. Go back and try again.")
	errTooLarge  = models.Errorf(models.CodeBodyTooLarge, "The form is larger than %d KiB, so nothing was done. Go back in your browser, which usually keeps what you entered, and shorten it.", maxForm>>10)
	errCrossSite = models.Errorf(models.CodePermissionDenied, "Another site made your browser send this request, so nothing was done.")
)

// errorView is an error page.
type errorView struct {
	Title, Detail string
	// SignedIn decides where the page leads.
	SignedIn bool
}

var errorPage = newPage[errorView]("error.html")

// errorText is how an error is shown.
type errorText struct {
	status        int
	title, detail string
}

// errorTexts are the status, title and sentence of errors whose own sentence is for
// programs. An empty sentence is the error's.
var errorTexts = map[models.Code]errorText{
	models.CodeNotFound:           {http.StatusNotFound, "Nothing here", "This page does not exist, or you may not see it."},
	models.CodePermissionDenied:   {http.StatusForbidden, "Not allowed", ""},
	models.CodeReadOnly:           {http.StatusForbidden, "Read-only", ""},
	models.CodePlanRestricted:     {http.StatusForbidden, "Not in the plan", ""},
	models.CodeInvalidRequest:     {http.StatusBadRequest, "Not understood", ""},
	models.CodeMethodNotAllowed:   {http.StatusMethodNotAllowed, "Not possible", ""},
	models.CodeValidationFailed:   {http.StatusUnprocessableEntity, "Not valid", ""},
	models.CodeRuleViolation:      {http.StatusUnprocessableEntity, "Against a rule", ""},
	models.CodePreconditionFailed: {http.StatusConflict, "Changed in the meantime", ""},
	models.CodeCursorExpired:      {http.StatusGone, "Expired", "This page of the list has expired. Start again from the first page."},
	models.CodeBodyTooLarge:       {http.StatusRequestEntityTooLarge, "Too large", ""},
	models.CodeRequestTimeout:     {http.StatusRequestTimeout, "Too slow", ""},
	models.CodeRateLimited:        {http.StatusTooManyRequests, "Too many requests", ""},
	models.CodeUnavailable:        {http.StatusServiceUnavailable, "Not available just now", ""},
	models.CodeInternal: {
		http.StatusInternalServerError, "Something went wrong",
		"Something went wrong on our side. Nothing was changed. Try again, and tell your administrator if it happens again.",
	},
}

// fail responds with an error page. It is the only place where an error becomes a
// page.
func (r *request) fail(err error) {
	// A body that is late ends the context as well, but its sender is there.
	if errors.Is(r.ctx().Err(), context.Canceled) && models.CodeOf(err) != models.CodeRequestTimeout {
		r.Status(web.StatusAbandoned)
		return
	}
	if _, stale := errors.AsType[*store.FormStaleError](err); stale { // of a form without a place for it
		err = models.Errorf(models.CodePreconditionFailed, "%s Look at the page again.", err)
	}
	text := r.explain(err)
	stateOf(r.ctx()).code = string(models.CodeOf(err))
	view := errorView{Title: text.title, Detail: text.detail, SignedIn: r.isSignedIn()}
	if text.status == http.StatusServiceUnavailable {
		r.retryAfter(5 * time.Second)
	}
	if err := errorPage.render(r, text.status, view); err != nil {
		r.console.log.ErrorContext(r.ctx(), "the error page failed", "error", err.Error())
		r.String(http.StatusInternalServerError, "Something went wrong.\n")
	}
}

// retryAfter tells programs when to try again.
func (r *request) retryAfter(wait time.Duration) (seconds int) {
	seconds = max(1, int((wait+time.Second-1)/time.Second))
	r.Header("Retry-After", strconv.Itoa(seconds))
	return seconds
}

// explain returns how an error is shown. An error other than *models.Error is logged, and its
// text not shown.
func (r *request) explain(err error) errorText {
	code := models.CodeOf(err)
	if code == models.CodeInternal && r.ctx().Err() == nil {
		r.console.log.ErrorContext(r.ctx(), "a page failed", "route", r.FullPath(), "error", err.Error())
	}
	text, known := errorTexts[code]
	if !known {
		text = errorTexts[models.CodeInternal]
	}
	text.detail = cmp.Or(text.detail, sentences(err))
	return text
}

// sentences returns the message of an error, or the messages of its fields.
func sentences(err error) string {
	known, ok := errors.AsType[*models.Error](err)
	switch {
	case !ok:
		return err.Error()
	case len(known.Fields) == 0:
		return known.Detail
	}
	return strings.Join(stringsOf(known.Fields, func(field models.FieldError) string { return field.Detail }), " ")
}

// isDone reports whether the form was sent before, and returns the record that it created
// or changed then.
func isDone(err error) (recordID string, done bool) {
	if e, ok := errors.AsType[*store.FormDoneError](err); ok {
		return e.RecordID, true
	}
	return "", false
}

var unknownPage = newPage[struct{}]("unknown.html")

// UnknownPage serves the page for an unknown path outside of the console, which links to
// the console and the documentation.
func (c *Console) UnknownPage() http.Handler {
	engine := gin.New()
	engine.Use(setHeaders)
	engine.NoRoute(func(g *gin.Context) {
		r := &request{Context: g, console: c, zone: time.UTC}
		if err := unknownPage.render(r, http.StatusNotFound, struct{}{}); err != nil {
			r.fail(err)
		}
	})
	return engine
}
