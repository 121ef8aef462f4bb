// Package console serves the pages below /console: to people who are signed in,
// with html/template, one style sheet and one script. Every page works without scripts.
//
// A request passes through middleware.go (deadline, headers, log, the check that no other
// site sent it) and gets its viewer (request.go): the person of its session, read again
// each time. Handlers contain no rules and no SQL. They call the functions that the API
// and the commands call, each with its room (package service). They take an Actor and check
// its permissions; a test keeps this so. An error becomes a page in errors.go alone; a record
// of another organization is the same 404, byte for byte, as one that does not exist.
//
// # Writing a page
//
// A topic has a file with its routes, views and handlers, and its templates:
//
//	func (c *Console) thingRoutes(pages *gin.RouterGroup) { // listed in Console.routes
//		pages.GET("/things", c.signedIn(requires(models.GrantIntegrations, c.listThings)))
//		pages.POST("/things/:id/rename", c.signedIn(c.renameThing))
//	}
//
//	type thingsView struct{ Things []thingRow; Pager pager }
//
//	var thingsPage = newPage[thingsView]("things.html")
//
//	func (c *Console) listThings(r *request) error {
//		things, err := c.service.Records.Things(r.ctx(), r.actor(), …)
//		…
//		return thingsPage.show(r, thingsView{…})
//	}
//
// Pages and forms about secrets, permissions and ways to sign in take c.recent instead of
// c.signedIn: people whose sign-in is not recent sign in again first (recent.go). What a page
// loads again and again takes c.polled, which does not extend the session.
//
// The template defines "title" and "content", whose dot is the view. A test executes every
// template with empty and with hostile views. Others try every route of routeCases
// (routes_test.go), where a new one is listed: TestEveryPageIsAccessible, and for a form
// TestADoubleClickActsOnce and TestSensitiveRoutesTakeARecentSignIn. An entry of sections
// (pages.go) puts a page into the sidebar for those who may see it.
//
// Parts for templates: {{template "time" .At}} of r.moment(t), {{template "state" .State}}
// of a stateMark (color, icon and word), {{template "pager" .Pager}}, {{icon "send"}},
// {{plural .N "delivery" "deliveries"}}; the classes card, stack, row,
// heading, note (good, warn, bad), facts, filters, empty, columns, details.drop (a menu), and
// table.cards, whose cells have data-label; {{template "select-all"}} heads a column of boxes.
// Icons are in templates/partials/sprite.html, styles in assets/css.
//
// # Writing a form
//
// A form that writes is sent with POST and answered with a redirect (request.done, with a
// key of doneTexts, whose text the next page shows once). newForm makes one to create something, editForm one that is filled
// from a record:
//
//	<form class="fields" method="post" action="…">
//	{{template "form" .Form}}
//	{{template "field" (.Form.Text "name" "Name" "required" "hint=For the log.")}}
//	{{template "field" (.Form.Choice "kind" "Kind" .Kinds)}}
//	<div class="row"><button class="primary" type="submit">Save</button></div>
//	</form>
//
//	func (c *Console) renameThing(r *request) error {
//		id := r.Param("id")
//		page := outcome{to: Root + "/things/" + id, done: "saved", again: c.renderThing}
//		return r.submit(page, func(f form) error {
//			return errorOf(c.service.Records.RenameThing(r.ctx(), r.actor(), f.key(r), id, f.Value("name")))
//		})
//	}
//
// {{template "form"}} writes the form's key and the record's ETag, of which submit makes the
// store.Key of the write. Store.Transaction stores it with the write's Log Record (Tx.Log),
// so a double click or a reload acts once, and finish redirects the second request to the same
// page. A write that compares the record first (Tx.Matches) is rejected if the record
// has changed: finish shows the form again with what was entered and with who changed what.
// When again shows the form after that, form.orRejected takes the record's ETag as it is now;
// shows(c.renderThing) serves the form before anything was entered.
// If what follows depends on the result, call sentForm, the write with form.key, and finish. Errors of fields
// are shown at the field with the name of the pointer, "/name" at "name".
//
// request.confirm asks before something is destroyed, with its effects in sentences and
// counts. request.showSecrets is the only way to show a secret: in the response to the POST
// that made it. A reload shows that it was shown before and links to where it is renewed.
//
// # Tests
//
// Package consoletest serves the console with a database and opens it in a real browser.
// Site.SignedIn is a client without a browser, for permissions and exact responses.
package console
