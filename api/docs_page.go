package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
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

// newDocsPage returns the page that renders the API's document.
func (a *API) newDocsPage() *docsPage {
	document := refined(a.huma.OpenAPI())
	page := &docsPage{Title: document.Info.Title, Guides: newDocsGuides()}
	page.addProse(document.Info.Description)
	for _, tag := range document.Tags {
		page.Groups = append(page.Groups, docsGroup{
			Name: tag.Name, Anchor: anchorOf("tag", tag.Name), Text: tag.Description, Operations: operationsWith(document, tag.Name),
		})
	}
	schemas := document.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		page.Schemas = append(page.Schemas, showSchema(name, schemas[name]))
	}
	page.index()
	return page
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

// operationsWith returns the operations and events of a tag by path, reads before writes. Getting
// a token is first: no call works without one.
func operationsWith(document *huma.OpenAPI, tag string) (all []docsOperation) {
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, op := range operationsOf(document.Paths[path]) {
			if slices.Contains(op.Tags, tag) {
				shown := showOperation(op, op.Method, path)
				shown.Command = curl(op, document.Servers[0].URL+path)
				all = append(all, shown)
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
	for _, name := range slices.Sorted(maps.Keys(document.Webhooks)) {
		if op := document.Webhooks[name].Post; slices.Contains(op.Tags, tag) {
			event := showOperation(op, "event", name)
			event.Summary = name + ": " + event.Summary
			all = append(all, event)
		}
	}
	return all
}

func showOperation(op *huma.Operation, method, path string) docsOperation {
	shown := docsOperation{
		Anchor: "op-" + op.OperationID, Summary: op.Summary, Method: method, Path: path, Paragraphs: paragraphsOf(op.Description),
	}
	for _, p := range op.Parameters {
		kind, _ := describeSchema(p.Schema)
		shown.Parameters = append(shown.Parameters, docsField{Name: p.Name, In: p.In, Type: kind, Text: p.Description, Required: p.Required})
	}
	if op.RequestBody != nil {
		body := showBody(op.RequestBody.Content)
		shown.Body = &body
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := op.Responses[status]
		body := showBody(response.Content)
		shown.Responses = append(shown.Responses, docsResponse{Status: status, Schema: body.Schema, Text: response.Description})
		if strings.HasPrefix(status, "2") && len(body.Examples) > 0 && shown.Response == "" {
			shown.Response = body.Examples[0]
		}
	}
	return shown
}

// curl returns a call of the operation with curl.
func curl(op *huma.Operation, url string) string {
	for _, p := range op.Parameters {
		if p.In == "path" {
			url = strings.ReplaceAll(url, "{"+p.Name+"}", fmt.Sprint(p.Example))
		}
	}
	command := "curl"
	if op.Method != http.MethodGet {
		command += " -X " + op.Method
	}
	command += " " + url
	if op.RequestBody == nil {
		return command + " \\\n  -H \"Authorization: Bearer $TOKEN\""
	}
	if op.RequestBody.Content[formMedia] != nil {
		command += " \\\n  -u \"$CLIENT_ID:$CLIENT_SECRET\""
		if strings.HasSuffix(url, "/token") {
			return command + " \\\n  -d grant_type=client_credentials"
		}
		return command + " \\\n  -d \"token=$TOKEN\""
	}
	command += " \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -H \"Content-Type: application/json\""
	if body := showBody(op.RequestBody.Content); len(body.Examples) > 0 {
		command += " \\\n  -d '" + strings.ReplaceAll(body.Examples[0], "'", `'\''`) + "'"
	}
	return command
}

// showBody returns the name of a body's schema and its examples, without those that refer to
// another part of the document.
func showBody(content map[string]*huma.MediaType) (shown docsBody) {
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		media := content[kind]
		shown.Schema = cmp.Or(shown.Schema, nameOfRef(media.Schema.Ref))
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			if example := media.Examples[name]; example.Ref == "" {
				text, err := json.MarshalIndent(example.Value, "", "  ")
				if err != nil {
					panic(err) // a mistake in the example
				}
				if !slices.Contains(shown.Examples, string(text)) { // two media types may share one
					shown.Examples = append(shown.Examples, string(text))
				}
			}
		}
	}
	return shown
}

func nameOfRef(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// describeSchema returns the type of values in words, and the schema that it refers to.
func describeSchema(s *huma.Schema) (kind, schema string) {
	switch {
	case s.Ref != "":
		schema = nameOfRef(s.Ref)
		return schema, schema
	case s.Items != nil:
		kind, schema = describeSchema(s.Items)
		return "array of " + kind, schema
	}
	for _, one := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		if kind, schema = describeSchema(one); kind != "null" && kind != "" {
			return kind, schema
		}
	}
	kind = s.Type
	if s.Nullable {
		kind += " or null"
	}
	if s.Format != "" {
		kind += " (" + s.Format + ")"
	}
	if len(s.Enum) > 0 {
		names := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			names[i] = fmt.Sprint(value)
		}
		kind += ": " + strings.Join(names, ", ")
	}
	return kind, ""
}

func showSchema(name string, s *huma.Schema) docsSchema {
	shown := docsSchema{Name: name, Anchor: "schema-" + name, Text: s.Description}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[field]
		kind, schema := describeSchema(property)
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

// guide returns the page that shows the nth guide.
func (p *docsPage) guide(n int) docsPage {
	shown := *p
	shown.Guide, shown.Base = &p.Guides[n], "../"
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
