package api

import "github.com/danielgtaylor/huma/v2"

// responseHeaders describe the headers of answers.
func responseHeaders() map[string]*huma.Header {
	text := func(required bool, description, example string) *huma.Header {
		return &huma.Header{Description: description, Required: required, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	count := func(description string, least float64, example int) *huma.Header {
		return &huma.Header{
			Description: description, Required: true, Example: example,
			Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int32", Minimum: &least},
		}
	}
	return map[string]*huma.Header{
		"X-Request-Id":          text(true, "The call's id: the caller's own X-Request-Id when it has at most 128 letters, digits, dots, colons, dashes and underscores.", exampleRequest),
		"X-RateLimit-Limit":     count("Calls allowed in a minute.", 1, 600),
		"X-RateLimit-Remaining": count("Calls left in this minute.", 0, 597),
		"X-RateLimit-Reset":     count("Seconds until the minute ends and the count starts anew.", 1, 41),
		"ETag":                  text(true, "Changes with every change of the answer; for If-None-Match and If-Match.", exampleETag),
		"Location":              text(true, "Path of the created record.", "/v1/work-orders/"+exampleWorkOrder),
		"Idempotency-Replayed":  text(false, "true when the answer is the replay of an earlier one with the same Idempotency-Key.", "true"),
		"Retry-After":           count("Seconds to wait before the next call.", 1, 41),
		"WWW-Authenticate":      text(false, "How to authenticate, and what was wrong with the token or which scope it lacks (RFC 6750 section 3).", `Bearer realm="millwright", error="insufficient_scope", scope="work_orders:write"`),
		"Cache-Control":         text(true, "Always no-store: the answer is a secret.", "no-store"),
		"Pragma":                text(true, "Always no-cache.", "no-cache"),
	}
}

// everyHeader are the headers of every answer.
func everyHeader() map[string]*huma.Param {
	return headersOf("X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
}

// headersOf refers to headers of the document.
func headersOf(names ...string) map[string]*huma.Param {
	headers := map[string]*huma.Param{}
	for _, name := range names {
		headers[name] = headerRef(name)
	}
	return headers
}

func headerRef(name string) *huma.Param { return &huma.Param{Ref: "#/components/headers/" + name} }
