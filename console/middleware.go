package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// state is what the request log needs to know.
type state struct{ person, code string }

type stateKey struct{}

func stateOf(ctx context.Context) *state {
	if s, ok := ctx.Value(stateKey{}).(*state); ok {
		return s
	}
	return &state{}
}

// begin gives the request its deadline, and counts and logs it when it ends. The log has
// the route, not the path and query, which may contain personal data or a link's secret.
func (c *Console) begin(g *gin.Context) {
	started := time.Now()
	s := &state{}
	ctx, cancel := context.WithTimeout(context.WithValue(g.Request.Context(), stateKey{}, s), c.options.RequestTimeout)
	defer cancel()
	g.Request = g.Request.WithContext(ctx)
	route := g.FullPath()
	if route == "" {
		route = "none"
	}
	defer func() {
		status, took := g.Writer.Status(), time.Since(started)
		c.metrics.count(g.Request.Method, route, status, took)
		c.log.LogAttrs(ctx, slog.LevelInfo, "page",
			slog.String("method", knownMethod(g.Request.Method)), slog.String("route", route), slog.Int("status", status),
			slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("person_id", s.person), slog.String("code", s.code))
	}()
	g.Next()
}

// policy restricts a page to what this server serves, and forbids framing it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers of every page. Pages have personal data, so no cache keeps
// them; assets override that. Browsers send no Origin with the policy no-referrer, and
// checkOrigin needs it.
func setHeaders(g *gin.Context) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		"Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), microphone=(), geolocation=()",
	} {
		g.Header(name, value)
	}
	g.Next()
}

// recover responds to a panic with an internal error page.
func (c *Console) recover(g *gin.Context) {
	defer func() {
		if value := recover(); value != nil {
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(value)
			}
			(&request{Context: g, console: c, zone: time.UTC}).fail(fmt.Errorf("panic: %v", value))
		}
	}()
	g.Next()
}

// checkOrigin rejects writes that another site makes a browser send.
func (c *Console) checkOrigin(g *gin.Context) {
	if err := c.guard.Check(g.Request); err != nil {
		(&request{Context: g, console: c, zone: time.UTC}).fail(errCrossSite)
		g.Abort()
		return
	}
	g.Next()
}
