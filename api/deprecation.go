package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// deprecation announces the end of an operation (docs/versioning.md).
type deprecation struct {
	// since is from when clients should no longer use it.
	since time.Time
	// sunset is from when it may no longer respond.
	sunset time.Time
	// link is a page that describes the replacement.
	link string
}

// deprecations are the deprecated operations by their ids. A line here sends the headers and
// marks the operation in the document.
var deprecations = map[string]deprecation{}

// deprecationHeaders document the headers of a deprecated operation.
var deprecationHeaders = map[string]string{
	"Deprecation": "Since when the operation is deprecated: @ and a Unix time (RFC 9745).",
	"Sunset":      "When the operation may stop responding (RFC 8594).",
	"Link":        "The page that describes the replacement, as deprecation and as sunset.",
}

// headers returns the values of deprecationHeaders.
func (d deprecation) headers() map[string]string {
	return map[string]string{
		"Deprecation": fmt.Sprintf("@%d", d.since.Unix()),
		"Sunset":      d.sunset.UTC().Format(http.TimeFormat),
		"Link":        fmt.Sprintf(`<%s>; rel="deprecation"; type="text/html", <%s>; rel="sunset"; type="text/html"`, d.link, d.link),
	}
}

// deprecate marks the deprecated operations in the document and makes their responses say
// so. An id without an operation is a mistake in the table.
func (a *API) deprecate() {
	a.deprecated = map[string]map[string]string{}
	left := maps.Clone(deprecations)
	document := a.huma.OpenAPI()
	for _, path := range document.Paths {
		for _, op := range operationsOf(path) {
			d, found := deprecations[op.OperationID]
			if !found {
				continue
			}
			delete(left, op.OperationID)
			op.Deprecated = true
			op.Description += fmt.Sprintf("\n\nDeprecated since %s, and removed on or after %s: see %s.",
				d.since.UTC().Format(time.DateOnly), d.sunset.UTC().Format(time.DateOnly), d.link)
			values := d.headers()
			for name, text := range deprecationHeaders {
				document.Components.Headers[name] = &huma.Header{
					Description: text, Required: true, Example: values[name], Schema: &huma.Schema{Type: huma.TypeString},
				}
			}
			for _, response := range op.Responses {
				headers := headersOf(slices.Collect(maps.Keys(deprecationHeaders))...)
				maps.Copy(headers, response.Headers)
				response.Headers = headers
			}
			a.deprecated[op.Method+" /v1"+strings.NewReplacer("{", ":", "}", "").Replace(op.Path)] = values
		}
	}
	if len(left) > 0 {
		panic(fmt.Sprintf("deprecations has operations that do not exist: %v", slices.Sorted(maps.Keys(left))))
	}
}

// announce adds the headers of a deprecated operation to each of its responses.
func (a *API) announce(c *gin.Context) {
	if len(a.deprecated) > 0 {
		for name, value := range a.deprecated[c.Request.Method+" "+c.FullPath()] {
			c.Header(name, value)
		}
	}
	c.Next()
}
