package api

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/service"
	"millwright/web"
)

//go:embed docs/*.html docs/*.js docs/*.css docs/*.png docs/*.txt docs/LICENSE docs/NOTICE
var docsFiles embed.FS

// docsPolicy restricts the page to its own scripts and styles and to this server,
// and forbids framing it. Its style sheet contains the data: images.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsTypes maps the extensions of the page's files to content types.
var docsTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".png": "image/png",
}

// serveDocs serves the page that renders the OpenAPI document, and its files.
func (a *API) serveDocs() {
	entries, err := docsFiles.ReadDir("docs")
	if err != nil {
		panic(err) // impossible: the files are embedded
	}
	for _, entry := range entries {
		content, err := docsFiles.ReadFile("docs/" + entry.Name())
		if err != nil {
			panic(err)
		}
		route := "/docs/" + entry.Name()
		if entry.Name() == "index.html" {
			route = "/docs"
		}
		kind, known := docsTypes[path.Ext(entry.Name())]
		if !known {
			kind = "text/plain; charset=utf-8"
		}
		a.engine.GET(route, serveFile(content, kind))
	}
}

// serveFile serves a file that never changes while the program runs, and is
// compressed only once. Browsers revalidate it with its ETag.
func serveFile(content []byte, kind string) gin.HandlerFunc {
	etag := service.ETag(content)
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
