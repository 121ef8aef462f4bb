package api

import (
	"bytes"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"millwright/docs"
)

// docsGuide is a page of docs/ as /docs/NAME shows it.
type docsGuide struct {
	Name, Title string
	HTML        template.HTML
	// Sections are its headings below the title, with what a search finds there.
	Sections []docsEntry
}

// newDocsGuides renders the guides.
func newDocsGuides() []docsGuide {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	guides := make([]docsGuide, len(docs.Guides))
	for i, name := range docs.Guides {
		source := embedded(docs.Files, name+".md")
		root := markdown.Parser().Parse(text.NewReader(source))
		guides[i] = docsGuide{Name: name}
		guides[i].addSections(root, source)
		keepServedLinks(root)
		var html bytes.Buffer
		if err := markdown.Renderer().Render(&html, source, root); err != nil {
			panic(err) // impossible: a buffer takes everything
		}
		// What scrolls must be reachable by the keyboard. Code contains no tags: it is escaped.
		guides[i].HTML = template.HTML(strings.NewReplacer( //nolint:gosec // rendered from a file of the program, without its raw HTML
			"<pre>", `<pre tabindex="0">`, "<table>", `<div class="table" role="region" aria-label="Table" tabindex="0"><table>`, "</table>", "</table></div>",
		).Replace(html.String()))
	}
	return guides
}

// addSections sets the title and the sections.
func (g *docsGuide) addSections(root ast.Node, source []byte) {
	var headings []*ast.Heading
	for node := root.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, ok := node.(*ast.Heading); ok {
			headings = append(headings, heading)
		}
	}
	for i, heading := range headings {
		line := heading.Lines().At(0)
		end := len(source)
		if i+1 < len(headings) {
			end = headings[i+1].Lines().At(0).Start
		}
		name := string(line.Value(source))
		kind, anchor := g.Title, "docs/"+g.Name
		if heading.Level == 1 {
			g.Title, kind = name, "Guide"
		} else if id, ok := heading.AttributeString("id"); ok {
			anchor += "#" + string(id.([]byte)) //nolint:forcetypeassert // goldmark's ids are bytes
		}
		g.Sections = append(g.Sections, docsEntry{name, kind, anchor, strings.ToLower(string(source[line.Start:end]))})
	}
}

// keepServedLinks makes links to other guides links to their pages, and removes links to files
// that the service does not show.
func keepServedLinks(root ast.Node) {
	var links []*ast.Link
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // no error: this one returns none
		if link, ok := node.(*ast.Link); ok && entering {
			links = append(links, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		file, fragment, _ := strings.Cut(string(link.Destination), "#")
		guide := strings.TrimSuffix(file, ".md")
		switch {
		case file == "" || strings.HasPrefix(file, "https://") || file == "postman.json":
		case slices.Contains(docs.Guides, guide):
			link.Destination = []byte(strings.TrimSuffix(guide+"#"+fragment, "#"))
		default:
			parent := link.Parent()
			for child := link.FirstChild(); child != nil; child = link.FirstChild() {
				parent.InsertBefore(parent, link, child)
			}
			parent.RemoveChild(parent, link)
		}
	}
}
