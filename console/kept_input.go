package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/service/people"
)

// maxKept limits the sealed input in a sign-in form, so that the form is not too large itself.
const maxKept = maxForm * 3 / 4

// keepInput shows the sign-in page with what was entered in a form whose session has ended,
// sealed for the person of that session. Nothing sends it by itself: after the sign-in the
// person sees the form again.
func (r *request) keepInput(f form) error {
	view := r.console.signInView(newForm(nil), "")
	view.Ended = true
	var err error
	view.Kept, err = r.console.service.People.KeepInput(r.ended, people.KeptInput{
		Route: r.FullPath(), URL: r.Request.URL.RequestURI(), Values: f.Values,
	})
	if err != nil {
		return err
	}
	if len(view.Kept) > maxKept {
		view.Kept, view.Form.Error = "", "You entered too much for it to be kept while you sign in. Go back, copy it, and then sign in."
	}
	return signInPage.render(r, http.StatusUnauthorized, view)
}

// showKept shows the form of keepInput, with what was entered, to the person who entered it.
func (r *request) showKept(sealed string) error {
	input, ok := r.console.service.People.OpenInput(r.viewer.IdentityID, sealed)
	if !ok {
		return r.done(Root, "input-lost")
	}
	at, err := url.ParseRequestURI(input.URL)
	if err != nil {
		return err
	}
	r.Request.URL, r.Params = at, paramsOf(input.Route, at.Path)
	f := formOf(input.Values)
	f.Kept = true
	if show := r.console.shownForms()[input.Route]; show != nil {
		r.message = "You are signed in again. What you entered is below and was not sent yet."
		return show(r, http.StatusOK, &f)
	}
	return r.confirm(confirmView{
		Title: "Send what you entered?", Effects: []string{"You are signed in again. Your session had ended, so nothing was done yet. What you entered is kept."},
		Action: at.RequestURI(), Button: "Send it", Harmless: true, Back: Root, Form: f, Hidden: f.entered(),
	})
}

// paramsOf returns the id of a path with a route that has one.
func paramsOf(route, path string) gin.Params {
	names, parts := strings.Split(route, "/"), strings.Split(path, "/")
	var params gin.Params
	for i, name := range names {
		if key, named := strings.CutPrefix(name, ":"); named && i < len(parts) {
			params = append(params, gin.Param{Key: key, Value: parts[i]})
		}
	}
	return params
}

// shownForms show the forms of routes again, with what was entered.
func (c *Console) shownForms() map[string]formHandler {
	order, feedback := Root+"/work-orders/:id", Root+"/feedback/:id"
	shown := map[string]formHandler{
		Root + "/work-orders": c.renderNewWorkOrder, Root + "/feedback": c.renderNewFeedback,
		order + "/edit": c.renderEditWorkOrder, order + "/answers": c.renderAnswers, order + "/cancel": c.renderCancel,
		order + "/return": c.renderReturn, order + "/assign": c.renderAssignees, order + "/review": c.renderWorkOrder,
		order + "/comments": c.renderWorkOrder, feedback + "/comments": c.renderFeedback,
	}
	for _, a := range selectedActions {
		shown[Root+a.path] = a.show
	}
	return shown
}
