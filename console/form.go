package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// form is the state of a form: the values, the mistakes in them, its key, and the
// ETag of the record it was filled from.
type form struct { //nolint:recvcheck // reject changes a form; templates call the other methods on values
	// Key is used once where the form is sent (form.key).
	Key  string
	ETag string
	// Seen is when the work order last changed before the form was shown.
	Seen string
	// Values are what the fields show.
	Values url.Values
	// Errors are sentences by the names of fields; Error is about the form as a whole.
	Errors map[string]string
	Error  string
	// Labels are what the list of errors calls the fields, without an entry if the error does.
	Labels map[string]string
	// focused is whether a field has the focus, nil if the form was not rejected: the page opens at
	// the first mistake.
	focused *bool
	// Changed is set if the record was changed since the form was shown.
	Changed *changedView
	// now are the values that the record has since then, by the names of fields.
	now url.Values
	// Kept is true if the form is shown again without having been sent to the service, which still
	// compares the record with what the form was filled from.
	Kept bool
}

// changedView lists the changes to a record, newest first, since a person opened its form.
// It is empty if the history does not show who changed the record.
type changedView struct{ Changes []changeLine }

// newForm returns a form to show. values are what its fields show first.
func newForm(values url.Values) form { return form{Key: rand.Text(), Values: values} }

// editForm is newForm for a change of the record: the form is rejected if the record has
// changed before it is sent.
func editForm(record any, values url.Values) form {
	etag, err := store.ETagOf(record)
	if err != nil {
		panic(err) // impossible: records are stored as JSON, too
	}
	f := newForm(values)
	f.ETag = etag
	return f
}

// workOrderForm is editForm for a work order. Its history names who has changed it since then.
func workOrderForm(d records.WorkOrderDetail, values url.Values) form {
	f := newForm(values)
	f.ETag, f.Seen = d.ETag, d.Record.ChangedAt.String()
	return f
}

// orRejected returns the form, or one that was rejected, to be sent again on the state that
// the form was filled from.
func (f form) orRejected(rejected *form) form {
	if rejected == nil {
		return f
	}
	again := *rejected
	if !again.Kept {
		again.ETag, again.Seen = f.ETag, f.Seen
	}
	if again.Changed != nil {
		again.now = f.Values
	}
	return again
}

// maxForm is the size of the largest form, in bytes.
const maxForm = 256 << 10

// largeForm is the size in bytes from which the forms of an organization, or of a visitor's network,
// are handled one at a time: one takes milliseconds to parse, check and show again.
const largeForm = 64 << 10

// readForm reads the body of a form. Errors: body_too_large, request_timeout, invalid_request.
func (r *request) readForm() error {
	if r.Request.Method != http.MethodPost {
		return nil
	}
	if r.Request.ContentLength > maxForm {
		r.Header("Connection", "close") // the rest is not worth reading
		return errTooLarge
	}
	// A connection's deadline needs the real time.
	control := http.NewResponseController(r.Writer)
	if err := control.SetReadDeadline(time.Now().Add(r.console.options.BodyTimeout)); err != nil {
		r.console.log.DebugContext(r.ctx(), "cannot set a deadline for reading a form", "error", err.Error())
	}
	body, err := io.ReadAll(http.MaxBytesReader(r.Writer, r.Request.Body, maxForm))
	if err != nil {
		r.Header("Connection", "close")
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return errTooLarge
		}
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			return models.Errorf(models.CodeRequestTimeout, "Your form did not arrive in time. Try again.")
		}
		return models.Errorf(models.CodeInvalidRequest, "The form ended too early.")
	}
	_ = control.SetReadDeadline(time.Time{}) // the server watches the connection while it responds
	r.sent, r.Request.Body = len(body), io.NopCloser(bytes.NewReader(body))
	return nil
}

// enterParsing waits until no other large form is handled, and returns the function that ends that.
// Errors: unavailable.
func (r *request) enterParsing() (leave func(), err error) {
	if r.sent <= largeForm {
		return func() {}, nil
	}
	return r.console.service.Access.EnterParsing(r.ctx(), cmp.Or(r.viewer.OrganizationID, "network "+r.client().Network))
}

// sentForm returns the form that was sent. Errors: invalid_request.
func (r *request) sentForm() (form, error) {
	if err := r.Request.ParseForm(); err != nil {
		return form{}, models.Errorf(models.CodeInvalidRequest, "The form is malformed.")
	}
	values := r.Request.PostForm
	for name, sent := range values {
		if !models.IsText(name + strings.Join(sent, "")) {
			return form{}, models.Errorf(models.CodeInvalidRequest, "The form has characters that are not text.")
		}
		for i, value := range sent { // browsers send the line ends of textareas as CR LF
			sent[i] = norm.NFC.String(strings.ReplaceAll(value, "\r\n", "\n"))
		}
	}
	return formOf(values), nil
}

// formOf returns a form with the values that were sent.
func formOf(values url.Values) form {
	f := form{Key: values.Get("form_key"), ETag: values.Get("etag"), Seen: values.Get("seen"), Values: values}
	if len(f.Key) > 64 {
		f.Key = ""
	}
	return f
}

// entered returns the values of the form, without those that {{template "form"}} writes.
func (f form) entered() []namedValue {
	return slices.DeleteFunc(keptValues(f.Values), func(v namedValue) bool { return v.Name == "form_key" || v.Name == "etag" || v.Name == "seen" })
}

// Value returns what was entered in a field, without white space around it, "" if it shows nothing.
func (f form) Value(name string) string { return models.Trim(f.Values.Get(name)) }

// Optional is Value, nil for an empty field.
func (f form) Optional(name string) *string {
	if value := f.Value(name); value != "" {
		return &value
	}
	return nil
}

// Secret returns what was entered in the field of a password, as it is.
func (f form) Secret(name string) string { return f.Values.Get(name) }

// Has reports whether a checkbox, or one of several values of a field, was chosen.
func (f form) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// key returns the key for the write that the form asks for: it happens once, and only on the
// state of the record that the form was filled from.
func (f form) key(r *request) store.Key { return f.keyAt(r, r.Request.URL) }

// keyAt is the key for a write by a form that is sent to the URL. The forms of a page may share
// form.Key, and each of them acts.
func (f form) keyAt(r *request, u *url.URL) store.Key {
	key := ""
	if f.Key != "" {
		digest := sha256.Sum256([]byte(f.Key + " " + u.RequestURI()))
		key = base64.RawURLEncoding.EncodeToString(digest[:])
	}
	return store.ForForm(r.viewer.IdentityID, key, f.ETag)
}

// reject reports whether the error is about what was entered, and stores it in the form
// and returns the status of the page that shows it again. The form keeps what was entered,
// except passwords.
func (f *form) reject(r *request, err error) (status int, rejected bool) {
	for name := range f.Values {
		if strings.Contains(name, "password") {
			f.Values.Del(name)
		}
	}
	if stale, ok := errors.AsType[*store.FormStaleError](err); ok {
		f.Changed = &changedView{}
		if stale.ActorName != "" {
			f.Changed.Changes = []changeLine{{Who: author{Name: stale.ActorName, Now: valueOf(stale.ActorNow)}, What: words(stale.Action), At: r.moment(stale.At)}}
		}
		return http.StatusConflict, true
	}
	known, ok := errors.AsType[*models.Error](err)
	if !ok {
		return 0, false
	}
	switch known.Code {
	case models.CodeValidationFailed, models.CodeRuleViolation, models.CodePlanRestricted, models.CodeReadOnly, models.CodeExternalIDTaken,
		models.CodeRateLimited:
	default:
		return 0, false
	}
	f.Errors, f.focused = map[string]string{}, new(bool)
	for _, field := range known.Fields[:min(len(known.Fields), models.MaxFieldErrors)] {
		name, _, _ := strings.Cut(strings.TrimPrefix(field.Pointer, "/"), "/")
		if detail := models.Shorten(field.Detail); !strings.Contains(f.Errors[name], detail) {
			f.Errors[name] = strings.TrimSpace(f.Errors[name] + "\n" + detail)
		}
	}
	if len(known.Fields) == 0 {
		f.Error = known.Detail
	}
	return errorTexts[known.Code].status, true
}

// formHandler shows a page with a form. entered is shown again with what a person has entered, such as
// a form that was rejected; without it the page is empty or shows the record.
type formHandler func(r *request, status int, entered *form) error

// shows serves a page with its form before anything was entered.
func shows(page formHandler) handler {
	return func(r *request) error { return page(r, http.StatusOK, nil) }
}

// outcome is the redirect after a write.
type outcome struct {
	// to is the page that is shown next, done a key of doneTexts.
	to, done string
	// toRecord returns the next page if the form was sent before, from the record that it
	// created; nil means to.
	toRecord func(id string) string
	// again shows the form with what is wrong with it.
	again formHandler
	// record is the work order of a workOrderForm.
	record string
}

// submit makes the write of the form that was sent, and responds with what follows.
func (r *request) submit(o outcome, write func(f form) error) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	return r.finish(f, write(f), o)
}

// submitChange is submit for a change of the record of the request that takes nothing from the form.
func submitChange[T any](r *request, o outcome, change func(ctx context.Context, actor store.Actor, key store.Key, id string) (T, error)) error {
	return r.submit(o, func(f form) error { return errorOf(change(r.ctx(), r.actor(), f.key(r), r.Param("id"))) })
}

// errorOf returns the error of a write whose result is not shown.
func errorOf[T any](_ T, err error) error { return err }

// finish responds to a form after its write: with a redirect to the next page, with the
// form again if the error is about what was entered, or with the error.
func (r *request) finish(f form, err error, o outcome) error {
	if err == nil {
		return r.done(o.to, o.done)
	}
	if id, done := isDone(err); done {
		if o.toRecord != nil {
			o.to = o.toRecord(id)
		}
		return r.done(o.to, doneBefore)
	}
	if status, rejected := f.reject(r, err); rejected && o.again != nil {
		if f.Changed != nil && o.record != "" {
			r.addChangesSince(o.record, &f)
		}
		return o.again(r, status, &f)
	}
	return err
}

// field is an input of a form, for {{template "field" .}}.
type field struct {
	Name, Label, Value, Error, Hint, Type, Autocomplete string
	// Now is what the record has, "" unless the form was filled from another state and something else was entered.
	Now string
	// Mode is the keyboard that telephones show, "" for that of the type.
	Mode     string
	Rows     int
	Required bool
	// Focus is true if the page opens at the field.
	Focus   bool
	Options []option
}

// option is a choice of a select, or of a group of checkboxes or radio buttons.
type option struct {
	Value, Label, Hint string
	Chosen             bool
}

// Text returns an input of the form for one line of text. settings are "required",
// "type=email", "autocomplete=name", "hint=A sentence.", "rows=4" for several lines.
func (f form) Text(name, label string, settings ...string) field {
	in := field{Name: name, Label: label, Value: f.Values.Get(name), Error: f.Errors[name], Type: "text"}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		switch key {
		case "required":
			in.Required = true
		case "type":
			in.Type = value
		case "autocomplete":
			in.Autocomplete = value
		case "hint":
			in.Hint = value
		case "rows":
			in.Type, in.Rows = "lines", max(2, int(value[0]-'0'))
		}
	}
	if in.Type == "password" {
		in.Value = ""
	}
	if now := f.now.Get(name); f.now.Has(name) && !sameText(now, f.Values.Get(name)) {
		in.Now = cmp.Or(now, "nothing")
	}
	if in.Focus = in.Error != "" && f.focused != nil && !*f.focused; in.Focus {
		*f.focused = true
	}
	return in
}

// Choice returns a select of the form.
func (f form) Choice(name, label string, options []option, settings ...string) field {
	return f.choose("select", options, f.Text(name, label, settings...))
}

// Radios returns a group of radio buttons of the form.
func (f form) Radios(name, label string, options []option, settings ...string) field {
	return f.choose("radios", options, f.Text(name, label, settings...))
}

// Suggest is Text with suggestions, besides which anything can be entered.
func (f form) Suggest(name, label string, options []option, settings ...string) field {
	in := f.Text(name, label, settings...)
	in.Type, in.Options = "suggest", options
	return in
}

// Boxes returns a group of checkboxes of the form.
func (f form) Boxes(name, label string, options []option, settings ...string) field {
	return f.choose("boxes", options, f.Text(name, label, settings...))
}

// choose returns a field of the form as one with which options are chosen.
func (f form) choose(kind string, options []option, in field) field {
	in.Type, in.Options, in.Now = kind, f.chosen(in.Name, options), ""
	if now := (form{Values: f.now}).chosen(in.Name, options); f.now.Has(in.Name) && !slices.Equal(now, in.Options) {
		now = slices.DeleteFunc(now, func(o option) bool { return !o.Chosen })
		in.Now = cmp.Or(listed(stringsOf(now, func(o option) string { return o.Label })), "nothing chosen")
	}
	return in
}

func (f form) chosen(name string, options []option) []option {
	options = slices.Clone(options)
	for i := range options {
		options[i].Chosen = f.Has(name, options[i].Value)
	}
	return options
}

// choice returns a select of a filter, for {{template "filter-select" .}}.
func choice(name, label string, options []option) field {
	return field{Name: name, Label: label, Type: "select", Options: options}
}

// confirmView is a page that states the effect of an action before it is done.
type confirmView struct {
	Title string
	// Effects are sentences, with counts where there are any.
	Effects []string
	// Action is the URL that the form is sent to; Button is its label, "" if there is no form.
	Action, Button string
	// Harmless actions have an ordinary button.
	Harmless bool
	// BackText is what the link back says, "" for Cancel.
	Back, BackText string
	// Again is the label of the button that shows the form with the Hidden values again, instead of Back.
	Again string
	Form  form
	// Fields are inputs above the button, such as a reason. Hidden is sent with them.
	Fields []field
	Hidden []namedValue
}

var confirmPage = newPage[confirmView]("confirm.html")

// confirm shows a page that asks whether to do what the form at Action does.
func (r *request) confirm(view confirmView) error {
	if view.Form.Key == "" {
		view.Form = newForm(nil)
	}
	return confirmPage.show(r, view)
}

// secretView is the only page that shows a secret: the response to the form that made it.
type secretView struct {
	Title   string
	Intro   string
	Secrets []namedValue
	// Next and NextText lead on.
	Next, NextText string
	// Shown is true if the secrets were in an earlier response. Renew is where new ones are made.
	Shown            bool
	Renew, RenewText string
	// Code is what to do with the secrets.
	CodeTitle, CodeIntro string
	Code                 []namedValue
}

var secretPage = newPage[secretView]("secret.html")

// showSecrets responds to a form that made secrets. If it was sent before, such as by
// loading the page again, the page explains this and links to where they are renewed.
func (r *request) showSecrets(err error, view secretView) error {
	if _, done := isDone(err); done {
		view.Shown, view.Secrets = true, nil
		err = nil
	}
	if err != nil {
		return err
	}
	return secretPage.show(r, view)
}
