package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
	"millwright/web"
)

// call is the state of one HTTP call. The middleware fills it in; it is in the context.
type call struct {
	api       *API
	requestID string
	// tokenSent distinguishes a missing token from an invalid one.
	tokenSent bool
	caller    access.Caller
	rate      access.Rate
	// record is the one that it reads, nil if it reads no single one.
	record store.RecordRead
	// idempotencyKeys are the values of the headers Idempotency-Key.
	idempotencyKeys []string
	// ifMatch are the values of the headers If-Match.
	ifMatch []string
	// body is the request body, or bodyError the reason why it cannot be read.
	body      []byte
	bodyError error
	// code is the code of the problem it ended with, "" on success.
	code models.Code
	// method and path identify the call together with its idempotency key.
	method, path string
}

type callKey struct{}

// callOf returns the call of the context, an empty one outside of a call.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// validRequestID is the form in which a caller's own X-Request-Id is accepted.
var validRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// begin gives the call its id, its deadline, its span and its context value. When
// the call ends, begin counts and logs it.
func (a *API) begin(c *gin.Context) {
	started := a.service.Store.Now()
	a.metrics.inFlight.Inc()
	defer a.metrics.inFlight.Dec()
	state := &call{
		api: a, requestID: a.requestID(c, started), method: c.Request.Method, path: c.Request.URL.Path,
		idempotencyKeys: c.Request.Header.Values("Idempotency-Key"), ifMatch: c.Request.Header.Values("If-Match"),
	}
	route := c.FullPath()
	ctx, span := a.startSpan(c.Request, route)
	ctx, cancel := context.WithTimeout(ctx, a.options.CallTimeout)
	defer cancel()
	ctx = withCall(ctx, state)
	c.Request = c.Request.WithContext(ctx)
	c.Writer.Header()["X-Request-Id"] = []string{state.requestID}
	if a.phase.Load() == phaseDraining {
		c.Header("Connection", "close")
	}
	defer func() {
		status, took := c.Writer.Status(), a.service.Store.Now().Sub(started)
		endSpan(span, state, route, status)
		a.metrics.count(knownMethod(state.method), route, status, state.code, took)
		a.logCall(ctx, state, route, status, took)
	}()
	c.Next()
}

// requestID returns the caller's own X-Request-Id if it is valid, else a new one.
func (a *API) requestID(c *gin.Context, now time.Time) string {
	if sent := c.GetHeader("X-Request-Id"); sent != "" && validRequestID.MatchString(sent) {
		return sent
	}
	id, err := models.NewID(models.PrefixRequest, now, a.service.Store.Random)
	if err != nil {
		return "req_unknown"
	}
	return id
}

// startSpan starts the span of a call, as part of the client's trace if it sent a
// traceparent. Tracestate and baggage are ignored: they are for the client's own
// systems.
func (a *API) startSpan(r *http.Request, route string) (context.Context, trace.Span) {
	ctx := r.Context()
	if a.options.Tracer == nil {
		return ctx, noop.Span{}
	}
	if sent := r.Header.Get("Traceparent"); sent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": sent})
	}
	name := knownMethod(r.Method)
	if route != "" {
		name += " " + route
	}
	return a.options.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer)) //nolint:spancheck // begin ends it
}

// endSpan records the call and its result in the span and ends it. Path and query
// are left out: they may contain personal data.
func endSpan(span trace.Span, state *call, route string, status int) {
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", knownMethod(state.method)),
			attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status),
			attribute.String("millwright.request_id", state.requestID),
			attribute.String("millwright.integration_id", state.caller.IdentityID))
		if state.code != "" {
			span.SetAttributes(attribute.String("error.type", string(state.code)))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, string(state.code))
		}
	}
	span.End()
}

// logCall writes one line of the access log, without path and query: they may
// contain personal data.
func (a *API) logCall(ctx context.Context, state *call, route string, status int, took time.Duration) {
	level := slog.LevelInfo
	if slices.Contains(probes, route) && status == http.StatusOK {
		level = slog.LevelDebug
	}
	if !a.log.Enabled(ctx, level) {
		return
	}
	// Without the place in the source, which no handler shows and takes a microsecond to find.
	line := slog.NewRecord(time.Now(), level, "call", 0)
	line.AddAttrs(
		slog.String("request_id", state.requestID), slog.String("method", knownMethod(state.method)), slog.String("route", route),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("integration_id", state.caller.IdentityID),
	)
	if state.code != "" {
		line.AddAttrs(slog.String("code", string(state.code)))
	}
	_ = a.log.Handler().Handle(ctx, line) // slog.Logger ignores its error, too
}

// Values of headers that every response has. Responses share them, so nothing may be
// added to them; their names are written as http.Header keeps them.
var (
	nosniff      = []string{"nosniff"}
	privateCache = []string{"private, no-cache"}
)

// setHeaders sets the headers that protect every response from browsers and
// caches. A response holds records of one integration: only its own client may
// cache it, and must revalidate it (ETag). No cache may keep what the OAuth endpoints
// respond, their errors included (RFC 6749 section 5.1). Handlers may override them.
func setHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h["X-Content-Type-Options"] = nosniff
	if forOAuth(c) {
		h.Set("Cache-Control", "no-store")
		h.Set(web.NoCompression, "a token or a secret")
		h.Set("Pragma", "no-cache")
	} else {
		h["Cache-Control"] = privateCache
	}
	c.Next()
}

// recover responds to a panic with an internal problem.
func (a *API) recover(c *gin.Context) {
	defer func() {
		if value := recover(); value != nil {
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(value)
			}
			a.fail(c, fmt.Errorf("panic: %v", value))
		}
	}()
	c.Next()
}

// showRate sets the rate headers of responses to calls that are not counted, because they cannot
// be or need not be. Counting replaces them.
func (a *API) showRate(c *gin.Context) {
	a.rateHeaders(c.Writer.Header(), a.service.Access.UncountedRate())
	c.Next()
}

// hold rejects calls while the API starts.
func (a *API) hold(c *gin.Context) {
	if a.phase.Load() == phaseStarting {
		a.fail(c, models.Errorf(models.CodeUnavailable, "The service is starting. Try again in a few seconds."))
	}
}

// requireOneAuthorization rejects a call with several Authorization headers: a proxy may have
// checked another one than the API would read.
func (a *API) requireOneAuthorization(c *gin.Context) {
	if len(c.Request.Header.Values("Authorization")) < 2 {
		return
	}
	var err error = models.Errorf(models.CodeInvalidRequest, "The request has more than one Authorization header.")
	if limited := a.countAddress(c); limited != nil {
		err = limited
	}
	a.fail(c, err)
}

// reject responds to a call that matches no operation. Such calls count against
// the client address.
func (a *API) reject(c *gin.Context, err error) {
	if limited := a.countAddress(c); limited != nil {
		err = limited
	}
	a.respondProblem(c, err)
}

// unknownPath responds to a path that does not exist: to people with a page, to programs
// with a problem.
func (a *API) unknownPath(c *gin.Context) {
	if a.options.UnknownPage == nil || c.Request.Method != http.MethodGet || !web.WantsPage(c.GetHeader("Accept")) {
		a.reject(c, models.NotFound())
		return
	}
	if err := a.countAddress(c); err != nil {
		a.respondProblem(c, err)
		return
	}
	callOf(c.Request.Context()).code = models.CodeNotFound
	a.options.UnknownPage.ServeHTTP(c.Writer, c.Request)
}

// countAddress counts a call without a token against its client address and sets
// the rate headers. Errors: rate_limited, after a delay.
func (a *API) countAddress(c *gin.Context) error {
	rate, err := a.service.Access.CountAddress(web.ClientAddress(c.Request, a.options.TrustedProxies))
	callOf(c.Request.Context()).rate = rate
	a.rateHeaders(c.Writer.Header(), rate)
	if err != nil {
		a.delay(c)
	}
	return err
}

// delay delays the response to a call over a limit.
func (a *API) delay(c *gin.Context) {
	network := web.ClientAddress(c.Request, a.options.TrustedProxies)
	a.delayed.Wait(c.Request.Context(), network, a.options.LimitDelay, c.Writer.Header())
}

// fail ends the call with the error, in the form of its path.
func (a *API) fail(c *gin.Context, err error) {
	if forOAuth(c) {
		a.respondTokenError(c, err)
		return
	}
	a.respondProblem(c, err)
}

// forOAuth reports whether the call is for an endpoint of RFC 6749, whose errors have another
// form (api.md 7.4).
func forOAuth(c *gin.Context) bool { return strings.HasPrefix(c.Request.URL.Path, "/v1/oauth/") }

// respondProblem ends the call with the error's problem.
func (a *API) respondProblem(c *gin.Context, err error) {
	p := a.problem(c.Request.Context(), err)
	for name, values := range p.headers {
		for _, v := range values {
			c.Writer.Header().Add(name, v)
		}
	}
	body, err := store.Encode(p)
	if err != nil {
		a.log.Error("cannot encode a problem", "error", err.Error())
	}
	c.Abort()
	c.Data(p.Status, p.ContentType(""), body)
}
