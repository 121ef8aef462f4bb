package console

import (
	"embed"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"millwright/models"
	"millwright/service/people"
)

//go:embed templates
var templateFiles embed.FS

// page is a template with the type of its view. Its file in templates/ defines "title" and
// "content", for which the dot is the view.
type page[V any] struct{ *pageTemplate }

type pageTemplate struct {
	file string
	// template parses the template when it is first called: commands and workers show no pages.
	template func() *template.Template
	// newView returns an empty view, for the test that executes every template.
	newView func() any
}

// allPages are all pages, for tests.
var allPages []*pageTemplate

// layout is what all pages have in common.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"asset": assetURL, "icon": icon, "breakable": breakable, "plural": plural, "choice": choice, "root": func() string { return Root },
	}).ParseFS(templateFiles, "templates/layout.html", "templates/partials/*.html"))
})

// newPage returns a page with its template.
func newPage[V any](file string) page[V] {
	t := sync.OnceValue(func() *template.Template {
		return template.Must(template.Must(layout().Clone()).ParseFS(templateFiles, "templates/"+file))
	})
	p := page[V]{&pageTemplate{file, t, func() any { return new(V) }}}
	allPages = append(allPages, p.pageTemplate)
	return p
}

// frame is what the layout shows around a page's view.
type frame struct {
	// Viewer is nil if no one is signed in.
	Viewer *people.Viewer
	Nav    []navGroup
	// Account is the entry in the menu below the person's name.
	Account navItem
	// Bar is at the bottom on a telephone.
	Bar   []navItem
	Theme models.Theme
	// Done describes the write before the redirect.
	Done string
	// Search is what the page has searched everything for.
	Search string
	// NoAPI is true if the page is about integrations, and the plan does not include the API.
	NoAPI bool
	View  any
}

// navGroup are entries of the sidebar with a heading.
type navGroup struct {
	Name  string
	Items []navItem
}

// navItem is an entry of the sidebar.
type navItem struct {
	Text, URL, Icon string
	// Current is "page" for the page that is shown, "true" for the part of the console that
	// it is in, "" for the others.
	Current string
	// Count is shown next to the text unless it is 0. Counts is true if it may change.
	Count  int
	Counts bool
}

func (p page[V]) render(r *request, status int, view V) error {
	f := frame{View: view}
	if status < http.StatusBadRequest {
		f.Done = r.takeDone()
	}
	if r.isSignedIn() {
		if r.path() == searchPath {
			f.Search = models.Trim(r.Query("q"))
		}
		f.Viewer, f.Theme, f.Bar, f.NoAPI = &r.viewer, r.viewer.Theme, r.navigation(barSections), !r.viewer.API && r.isAboutIntegrations()
		f.Account = r.navigation([]section{account})[0]
		for _, group := range sections {
			if items := r.navigation(group.sections); len(items) > 0 {
				f.Nav = append(f.Nav, navGroup{group.name, items})
			}
		}
	}
	return r.sendPage(status, func(body io.Writer) error { return p.template().Execute(body, f) })
}

// fragment responds 200 with the part of the page that its template defines as "fragment" to
// the script that loads it into another page, and with the page to others.
func (p page[V]) fragment(r *request, view V) error {
	if r.GetHeader("HX-Request") != "true" {
		return p.show(r, view)
	}
	return r.sendPage(http.StatusOK, func(body io.Writer) error { return p.template().ExecuteTemplate(body, "fragment", view) })
}

// sendPage responds with what execute writes. Here, and not in each template, characters that
// change the direction of text become visible: titles, attributes and sentences have them too.
func (r *request) sendPage(status int, execute func(io.Writer) error) error {
	var body strings.Builder
	if err := execute(&body); err != nil {
		return err
	}
	r.Data(status, "text/html; charset=utf-8", []byte(spellDirections(body.String())))
	return nil
}

// show responds 200 with the page.
func (p page[V]) show(r *request, view V) error { return p.render(r, http.StatusOK, view) }

// section is an entry of the sidebar, for people for whom may returns true. more are paths of its
// pages that are not below its own.
type section struct {
	text, path, icon string
	may              func(people.Viewer) bool
	more             []string
}

// current returns what the sidebar says of the section on a page, by its path in the
// console (navItem.Current).
func (s section) current(at string) string {
	if at == s.path {
		return "page"
	}
	for _, path := range append(s.more, s.path) {
		if path != "" && strings.HasPrefix(at, path+"/") {
			return "true"
		}
	}
	return ""
}

func everyone(people.Viewer) bool { return true }

func having(grant models.OrganizationGrant) func(people.Viewer) bool {
	return func(v people.Viewer) bool { return v.Has(grant) }
}

// sections are the sidebar, in order. A section is added with its pages.
var sections = []struct {
	name     string
	sections []section
}{
	{"Work", []section{
		{"Start", "", "home", everyone, nil},
		{"Work orders", "/work-orders", "job", everyone, nil},
		{"Feedback", "/feedback", "chat", everyone, nil},
		{"Inventory", "/inventory", "tree", everyone, nil},
		{"Notices", "/notices", "bell", everyone, nil},
	}},
	{"Organization", []section{
		{"People", "/people", "people", everyone, nil},
		{"Teams", "/teams", "team", everyone, []string{"/service-companies"}},
		{"Forms", "/forms", "form", everyone, nil},
		{"Log", "/log", "log", having(models.GrantLogRecords), nil},
	}},
	{"Connections", connections},
}

var (
	// connections require the Integrations permission.
	connections = []section{
		{"Integrations", "/integrations", "plug", having(models.GrantIntegrations), []string{"/webhooks"}},
		{"Deliveries", "/deliveries", "send", having(models.GrantIntegrations), []string{"/charts"}},
		{"What is stuck", "/stuck", "warn", having(models.GrantIntegrations), nil},
	}
	account = section{"Account", "/account", "user", everyone, nil}
)

// path is the path of the page in the console.
func (r *request) path() string { return strings.TrimPrefix(r.Request.URL.Path, Root) }

// isAboutIntegrations reports whether the page is in a part of the console that requires the
// Integrations permission, and the person has it.
func (r *request) isAboutIntegrations() bool {
	return r.may(models.GrantIntegrations) && slices.ContainsFunc(connections, func(s section) bool { return s.current(r.path()) != "" })
}

// barSections are the bar at the bottom of a telephone. A label is scanned with the camera of
// the telephone, which opens the node page.
var barSections = []section{
	{"Work", "", "job", everyone, []string{"/work-orders"}},
	{"Scan or search", "/inventory", "scan", everyone, nil},
	{"Notices", "/notices", "bell", everyone, nil},
	{"Me", "/account", "user", everyone, nil},
}

// navigation returns the entries of the sections that the person may open.
func (r *request) navigation(of []section) []navItem {
	var items []navItem
	at := r.path()
	for _, s := range of {
		if !s.may(r.viewer) {
			continue
		}
		item := navItem{Text: s.text, URL: Root + s.path, Icon: s.icon, Current: s.current(at)}
		if s.path == "/notices" {
			item.Count, item.Counts = r.viewer.UnreadNotices, true
		}
		items = append(items, item)
	}
	return items
}

// linkTo returns a URL of the console with the query's parameters that have a value.
// Parameters are pairs of name and value.
func linkTo(path string, parameters ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			query.Set(parameters[i], parameters[i+1])
		}
	}
	if len(query) == 0 {
		return Root + path
	}
	return Root + path + "?" + query.Encode()
}

// namedValue is a value to show with its name.
type namedValue struct{ Name, Value string }

// stateMark is a state of something as color, icon and word ({{template "state" .}}). Tone
// is good, warn, bad, held or muted.
type stateMark struct{ Tone, Icon, Text string }

// pager links to other pages of a list ({{template "pager" .}}).
type pager struct{ Newer, Previous, Older string }

// pagesOf links to the other pages of a list, of which this one begins at the position before and the
// next one at next. unfiltered is the list without filters, "" if no filter is set.
func pagesOf(path string, filters []string, before, next string) (pages pager, unfiltered string) {
	first := linkTo(path, filters...)
	if first != Root+path {
		unfiltered = Root + path
	}
	if before != "" {
		pages.Newer = first
	}
	if next != "" {
		pages.Older = linkTo(path, append(filters, "before", next)...)
	}
	return pages, unfiltered
}

// position is a position in a list as URLs have it, "" for the beginning.
func position(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}
