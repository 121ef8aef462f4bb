package api

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/docs"
	"millwright/service/store"
	"millwright/web"
)

//go:embed docs/page.html docs/docs.css docs/icon.svg
var docsFiles embed.FS

// docsPolicy allows the page nothing but its own style sheet, icon and search.
const docsPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// maxDocsQuery bounds a search of the documentation, in characters.
const maxDocsQuery = 100

// serveDocs serves the document of the API as a page, whole or searched, the guides, and their files.
func (a *API) serveDocs() {
	pages := template.Must(template.New("page.html").Funcs(template.FuncMap{"text": docsText}).ParseFS(docsFiles, "docs/page.html"))
	whole := sync.OnceValues(func() (docsPage, error) { return a.newDocsPage() })
	render := func(page docsPage) ([]byte, error) {
		var html bytes.Buffer
		err := pages.Execute(&html, page)
		return html.Bytes(), err
	}
	serve := sync.OnceValues(func() (gin.HandlerFunc, error) {
		page, err := whole()
		if err != nil {
			return nil, err
		}
		html, err := render(page)
		return serveFile(html, "text/html; charset=utf-8"), err
	})
	for i, name := range docs.Guides {
		guide := sync.OnceValues(func() (gin.HandlerFunc, error) {
			page, err := whole()
			if err != nil {
				return nil, err
			}
			html, err := render(page.guide(page.Guides[i]))
			return serveFile(html, "text/html; charset=utf-8"), err
		})
		a.engine.GET("/docs/"+name, func(c *gin.Context) {
			handler, err := guide()
			if err != nil {
				a.respondProblem(c, err)
				return
			}
			handler(c)
		})
	}
	a.engine.GET("/docs", func(c *gin.Context) {
		handler, err := serve()
		query := []rune(c.Query("q"))
		if len(query) > 0 && err == nil {
			var html []byte
			if html, err = a.searchDocs(c, whole, render, string(query[:min(len(query), maxDocsQuery)])); err == nil {
				handler = serveFile(html, "text/html; charset=utf-8")
			}
		}
		if err != nil {
			a.respondProblem(c, err)
			return
		}
		handler(c)
	})
	collection, err := docs.Files.ReadFile("postman.json")
	if err != nil {
		panic(err) // impossible: the files are embedded
	}
	a.engine.GET("/docs/postman.json", serveFile(collection, "application/json"))
	for name, kind := range map[string]string{"docs.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := docsFiles.ReadFile("docs/" + name)
		if err != nil {
			panic(err) // impossible: the files are embedded
		}
		a.engine.GET("/docs/"+name, serveFile(content, kind))
	}
}

// searchDocs renders what a search finds. It counts against the client address.
func (a *API) searchDocs(c *gin.Context, whole func() (docsPage, error), render func(docsPage) ([]byte, error), query string) ([]byte, error) {
	if err := a.countAddress(c); err != nil {
		return nil, err
	}
	page, err := whole()
	if err != nil {
		return nil, err
	}
	return render(page.search(query))
}

// serveFile serves a file that never changes while the program runs, and is
// compressed only once. Browsers revalidate it with its ETag.
func serveFile(content []byte, kind string) gin.HandlerFunc {
	etag := store.ETag(content)
	packed := sync.OnceValue(func() []byte { return web.Gzipped(content) })
	return func(c *gin.Context) {
		content := content
		if web.AcceptsGzip(c.GetHeader("Accept-Encoding")) && packed() != nil {
			content = packed()
			c.Header("Content-Encoding", "gzip")
		}
		for name, value := range map[string]string{
			"Content-Type": kind, "ETag": etag, "Cache-Control": "no-cache", "Content-Security-Policy": docsPolicy,
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			c.Header(name, value)
		}
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(content))
	}
}
