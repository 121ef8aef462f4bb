package api

import (
	"bytes"
	"embed"
	"html/template"
	"sync"

	"github.com/gin-gonic/gin"

	"millwright/docs"
	"millwright/service/store"
	"millwright/web"
)

//go:embed docs/introduction.md docs/page.html docs/docs.css docs/icon.svg
var docsFiles embed.FS

// docsPolicy allows the page nothing but its own style sheet, icon and search.
const docsPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// maxDocsQuery bounds a search of the documentation, in characters.
const maxDocsQuery = 100

// serveDocs serves the document of the API as a page, whole or searched, the guides, and their files.
// A search counts against the client address.
func (a *API) serveDocs() {
	pages := template.Must(template.New("page.html").Funcs(template.FuncMap{"text": docsText}).ParseFS(docsFiles, "docs/page.html"))
	whole := sync.OnceValue(a.newDocsPage)
	serve := func(page docsPage) gin.HandlerFunc {
		var html bytes.Buffer
		if err := pages.Execute(&html, page); err != nil {
			panic(err) // a mistake in the template
		}
		return serveFile(html.Bytes(), "text/html; charset=utf-8")
	}
	for i, name := range docs.Guides {
		guide := sync.OnceValue(func() gin.HandlerFunc { return serve(whole().guide(i)) })
		a.engine.GET("/docs/"+name, func(c *gin.Context) { guide()(c) })
	}
	all := sync.OnceValue(func() gin.HandlerFunc { return serve(*whole()) })
	a.engine.GET("/docs", func(c *gin.Context) {
		query := []rune(c.Query("q"))
		if len(query) == 0 {
			all()(c)
			return
		}
		if err := a.countAddress(c); err != nil {
			a.respondProblem(c, err)
			return
		}
		serve(whole().search(string(query[:min(len(query), maxDocsQuery)])))(c)
	})
	a.engine.GET("/docs/postman.json", serveFile(embedded(docs.Files, "postman.json"), "application/json"))
	for name, kind := range map[string]string{"docs.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		a.engine.GET("/docs/"+name, serveFile(embedded(docsFiles, "docs/"+name), kind))
	}
}

// embedded returns an embedded file.
func embedded(files embed.FS, name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err) // a mistake in the name
	}
	return content
}

// serveFile serves a file that never changes while the program runs. Browsers revalidate it
// with its ETag.
func serveFile(content []byte, kind string) gin.HandlerFunc {
	etag := store.ETag(content)
	static := web.Static(content)
	return func(c *gin.Context) {
		for name, value := range map[string]string{
			"Content-Type": kind, "ETag": etag, "Cache-Control": "no-cache", "Content-Security-Policy": docsPolicy,
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			c.Header(name, value)
		}
		static(c)
	}
}
