package api

import (
	"math"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// responseHeaders are the document's response headers.
func responseHeaders() map[string]*huma.Header {
	text := func(required bool, description, example string) *huma.Header {
		return &huma.Header{Description: description, Required: required, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	count := func(description string, least, most float64, example int) *huma.Header {
		return &huma.Header{
			Description: description, Required: true, Example: example,
			Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int32", Minimum: &least, Maximum: &most},
		}
	}
	return map[string]*huma.Header{
		"X-Request-Id":          text(true, "The call's id: the caller's own X-Request-Id if it has at most 128 characters and only letters, digits, dots, colons, dashes and underscores.", exampleRequest),
		"X-RateLimit-Limit":     count("Calls allowed per minute.", 1, math.MaxInt32, 600),
		"X-RateLimit-Remaining": count("Calls left in this minute.", 0, math.MaxInt32, 597),
		"X-RateLimit-Reset":     count("Seconds until the minute ends and the count restarts.", 1, models.RateWindow.Seconds(), 41),
		"ETag":                  text(true, "Identifies this version of the record or page, for If-None-Match and If-Match.", exampleETag),
		"Location":              text(true, "Path of the created record.", "/v1/work-orders/"+exampleWorkOrder),
		"Idempotency-Replayed":  text(false, "true if the response repeats an earlier one with the same Idempotency-Key.", "true"),
		"Retry-After":           count("Seconds to wait before the next call.", 1, models.RateWindow.Seconds(), 41),
		"WWW-Authenticate":      text(false, "How to authenticate, and why the token is invalid or which scope it lacks (RFC 6750 section 3).", `Bearer realm="millwright", error="insufficient_scope", scope="work_orders:write"`),
		"Cache-Control":         text(true, "Always no-store: the response is secret.", "no-store"),
		"Pragma":                text(true, "Always no-cache.", "no-cache"),
	}
}

// everyHeader are the headers of every response.
func everyHeader() map[string]*huma.Param {
	return headersOf("X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
}

// headersOf returns references to headers of the document.
func headersOf(names ...string) map[string]*huma.Param {
	headers := map[string]*huma.Param{}
	for _, name := range names {
		headers[name] = headerRef(name)
	}
	return headers
}

func headerRef(name string) *huma.Param { return &huma.Param{Ref: "#/components/headers/" + name} }
