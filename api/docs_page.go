package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// docsPage is what the page at /docs shows: the operations by tag, the events, then the
// introduction's sections and the schemas.
type docsPage struct {
	Title    string
	Intro    []string
	Groups   []docsGroup
	Sections []docsSection
	Schemas  []docsSchema
	Guides   []docsGuide
	// Guide is the guide that is shown, nil where the operations are shown.
	Guide *docsGuide
	// Base is the relative path to the service's root.
	Base string
	// Query is what was searched for, "" on the whole page.
	Query   string
	Found   []docsEntry
	entries []docsEntry
}

type docsGroup struct {
	Name, Anchor, Text string
	Operations         []docsOperation
}

type docsOperation struct {
	Anchor, Summary, Method, Path string
	Paragraphs                    []string
	Parameters                    []docsField
	Body                          *docsBody
	Responses                     []docsResponse
	// Command is a call with curl, Response the body of its success.
	Command, Response string
}

type docsField struct {
	Name, In, Type, Schema, Text string
	Required                     bool
}

type docsBody struct {
	Schema   string
	Examples []string
}

type docsResponse struct{ Status, Schema, Text string }

type docsSection struct {
	Name, Anchor string
	Paragraphs   []string
}

type docsSchema struct {
	Name, Anchor, Text string
	Fields             []docsField
}

// docsEntry is a part of the pages that a search can find, at Path. words is its text in lower case.
type docsEntry struct{ Name, Kind, Path, words string }

// The parts of the OpenAPI document that the page shows.
type (
	openAPIDocument struct {
		Info struct {
			Title, Description string
		}
		Servers    []struct{ URL string }
		Tags       []struct{ Name, Description string }
		Paths      map[string]map[string]openAPIOperation
		Webhooks   map[string]map[string]openAPIOperation
		Components struct {
			Schemas    map[string]openAPISchema
			Parameters map[string]openAPIParameter
			Responses  map[string]openAPIBody
		}
	}
	openAPIOperation struct {
		OperationID, Summary, Description string
		Tags                              []string
		Parameters                        []openAPIParameter
		RequestBody                       *openAPIBody
		Responses                         map[string]openAPIBody
	}
	openAPIParameter struct {
		Ref                   string `json:"$ref"`
		Name, In, Description string
		Required              bool
		Schema                openAPISchema
		Example               any
	}
	openAPIBody struct {
		Ref         string `json:"$ref"`
		Description string
		Content     map[string]struct {
			Schema   openAPISchema
			Examples map[string]struct{ Value json.RawMessage }
		}
	}
	openAPISchema struct {
		Ref         string `json:"$ref"`
		Type        any
		Format      string
		Description string
		Enum        []any
		Properties  map[string]openAPISchema
		Required    []string
		Items       *openAPISchema
		AllOf       []openAPISchema
		AnyOf       []openAPISchema
		OneOf       []openAPISchema
	}
)

// newDocsPage returns the page that renders the API's document.
func (a *API) newDocsPage() (docsPage, error) {
	text, err := a.OpenAPI()
	if err != nil {
		return docsPage{}, err
	}
	var d openAPIDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return docsPage{}, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	guides, err := newDocsGuides()
	if err != nil {
		return docsPage{}, err
	}
	page := docsPage{Title: d.Info.Title, Guides: guides}
	page.addProse(d.Info.Description)
	for _, tag := range d.Tags {
		group := docsGroup{Name: tag.Name, Anchor: anchorOf("tag", tag.Name), Text: tag.Description}
		group.Operations = d.called(tag.Name)
		page.Groups = append(page.Groups, group)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		page.Schemas = append(page.Schemas, schemaOf(name, d.Components.Schemas[name]))
	}
	page.index()
	return page, nil
}

// addProse splits the introduction: what precedes its first heading, and its sections.
func (p *docsPage) addProse(markdown string) {
	before, sections, _ := strings.Cut("\n"+markdown, "\n## ")
	p.Intro = paragraphsOf(before)
	for section := range strings.SplitSeq(sections, "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		if name != "" {
			p.Sections = append(p.Sections, docsSection{Name: name, Anchor: anchorOf("about", name), Paragraphs: paragraphsOf(text)})
		}
	}
}

func paragraphsOf(text string) (paragraphs []string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			paragraphs = append(paragraphs, paragraph)
		}
	}
	return paragraphs
}

// anchorOf returns the id of a part of the page.
func anchorOf(kind, name string) string {
	return kind + "-" + strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
}

var docsMethods = []string{"get", "post", "patch", "put", "delete"}

// called returns the operations and events of a tag by path, reads before writes. Getting a
// token is first: no call works without one.
func (d *openAPIDocument) called(tag string) (all []docsOperation) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range docsMethods {
			if op, there := d.Paths[path][method]; there && slices.Contains(op.Tags, tag) {
				all = append(all, d.operation(op, strings.ToUpper(method), path))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b docsOperation) int {
		switch "/oauth/token" {
		case a.Path:
			return -1
		case b.Path:
			return 1
		}
		return 0
	})
	for _, name := range slices.Sorted(maps.Keys(d.Webhooks)) {
		if op, there := d.Webhooks[name]["post"]; there && slices.Contains(op.Tags, tag) {
			event := d.operation(op, "event", name)
			event.Summary, event.Command = name+": "+event.Summary, ""
			all = append(all, event)
		}
	}
	return all
}

func (d *openAPIDocument) operation(op openAPIOperation, method, path string) docsOperation {
	shown := docsOperation{
		Anchor: "op-" + op.OperationID, Summary: op.Summary, Method: method, Path: path, Paragraphs: paragraphsOf(op.Description),
	}
	for _, p := range op.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[nameOfRef(p.Ref)]
		}
		kind, _ := p.Schema.describe()
		shown.Parameters = append(shown.Parameters, docsField{Name: p.Name, In: p.In, Type: kind, Text: p.Description, Required: p.Required})
	}
	if op.RequestBody != nil {
		schema, examples := op.RequestBody.show()
		shown.Body = &docsBody{Schema: schema, Examples: examples}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := op.Responses[status]
		if response.Ref != "" {
			response = d.Components.Responses[nameOfRef(response.Ref)]
		}
		schema, examples := response.show()
		shown.Responses = append(shown.Responses, docsResponse{Status: status, Schema: schema, Text: response.Description})
		if strings.HasPrefix(status, "2") && len(examples) > 0 && shown.Response == "" {
			shown.Response = examples[0]
		}
	}
	if len(d.Servers) > 0 {
		shown.Command = d.command(op, method, d.Servers[0].URL+path)
	}
	return shown
}

// command returns a call of the operation with curl.
func (d *openAPIDocument) command(op openAPIOperation, method, url string) string {
	for _, p := range op.Parameters {
		if p.In == "path" {
			url = strings.ReplaceAll(url, "{"+p.Name+"}", fmt.Sprint(p.Example))
		}
	}
	command := "curl"
	if method != http.MethodGet {
		command += " -X " + method
	}
	command += " " + url
	if op.RequestBody == nil {
		return command + " \\\n  -H \"Authorization: Bearer $TOKEN\""
	}
	if _, form := op.RequestBody.Content["application/x-www-form-urlencoded"]; form {
		command += " \\\n  -u \"$CLIENT_ID:$CLIENT_SECRET\""
		if strings.HasSuffix(url, "/token") {
			return command + " \\\n  -d grant_type=client_credentials"
		}
		return command + " \\\n  -d \"token=$TOKEN\""
	}
	command += " \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -H \"Content-Type: application/json\""
	if _, examples := op.RequestBody.show(); len(examples) > 0 {
		command += " \\\n  -d '" + strings.ReplaceAll(examples[0], "'", `'\''`) + "'"
	}
	return command
}

// show returns the name of the body's schema and its examples.
func (b openAPIBody) show() (schema string, examples []string) {
	for _, kind := range slices.Sorted(maps.Keys(b.Content)) {
		content := b.Content[kind]
		schema = cmp.Or(schema, nameOfRef(content.Schema.Ref))
		for _, name := range slices.Sorted(maps.Keys(content.Examples)) {
			var indented bytes.Buffer
			if json.Indent(&indented, content.Examples[name].Value, "", "  ") == nil {
				examples = append(examples, indented.String())
			}
		}
	}
	return schema, examples
}

func nameOfRef(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// describe returns the type of values in words, and the schema that it refers to.
func (s openAPISchema) describe() (kind, schema string) {
	switch {
	case s.Ref != "":
		schema = nameOfRef(s.Ref)
		return schema, schema
	case s.Items != nil:
		kind, schema = s.Items.describe()
		return "array of " + kind, schema
	}
	for _, one := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		if kind, schema = one.describe(); kind != "null" && kind != "" {
			return kind, schema
		}
	}
	switch t := s.Type.(type) {
	case string:
		kind = t
	case []any:
		for _, one := range t {
			kind = strings.TrimPrefix(kind+" or "+fmt.Sprint(one), " or ")
		}
	}
	if s.Format != "" {
		kind += " (" + s.Format + ")"
	}
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			values[i] = fmt.Sprint(value)
		}
		kind += ": " + strings.Join(values, ", ")
	}
	return kind, ""
}

func schemaOf(name string, s openAPISchema) docsSchema {
	shown := docsSchema{Name: name, Anchor: "schema-" + name, Text: s.Description}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[field]
		kind, schema := property.describe()
		shown.Fields = append(shown.Fields, docsField{
			Name: field, Type: kind, Schema: schema, Text: property.Description, Required: slices.Contains(s.Required, field),
		})
	}
	return shown
}

// index collects what a search can find.
func (p *docsPage) index() {
	add := func(name, kind, anchor string, contents ...string) {
		p.entries = append(p.entries, docsEntry{name, kind, "docs#" + anchor, strings.ToLower(name + " " + strings.Join(contents, " "))})
	}
	for _, g := range p.Groups {
		for _, op := range g.Operations {
			contents := append(slices.Clone(op.Paragraphs), g.Name, op.Method, op.Path)
			for _, field := range op.Parameters {
				contents = append(contents, field.Name, field.Text)
			}
			for _, r := range op.Responses {
				contents = append(contents, r.Status, r.Text)
			}
			add(op.Summary, op.Method+" "+op.Path, op.Anchor, contents...)
		}
	}
	for _, s := range p.Sections {
		add(s.Name, "Conventions", s.Anchor, s.Paragraphs...)
	}
	for _, g := range p.Guides {
		p.entries = append(p.entries, g.Sections...)
	}
	for _, s := range p.Schemas {
		contents := []string{s.Text}
		for _, field := range s.Fields {
			contents = append(contents, field.Name, field.Type, field.Text)
		}
		add(s.Name, "Schema", s.Anchor, contents...)
	}
}

// guide returns the page that shows the guide.
func (p *docsPage) guide(g docsGuide) docsPage {
	shown := *p
	shown.Guide, shown.Base = &g, "../"
	return shown
}

// search returns the page with the entries that have every word of the query, names that have one first.
func (p *docsPage) search(query string) docsPage {
	shown := *p
	shown.Query = query
	words := strings.Fields(strings.ToLower(query))
	for _, inName := range []bool{true, false} {
		for _, e := range p.entries {
			has := func(text string) func(string) bool {
				return func(word string) bool { return strings.Contains(text, word) }
			}
			named := slices.ContainsFunc(words, has(strings.ToLower(e.Name+" "+e.Kind)))
			missing := slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e.words, word) })
			if named == inName && !missing && len(words) > 0 {
				shown.Found = append(shown.Found, e)
			}
		}
	}
	return shown
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// docsText returns a description in the document as HTML. Descriptions use only `code` of Markdown.
func docsText(text string) template.HTML {
	return template.HTML(codeSpan.ReplaceAllString(template.HTMLEscapeString(text), "<code>$1</code>")) //nolint:gosec // escaped before
}
