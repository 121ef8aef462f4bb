package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"millwright/models"
	"millwright/service"
)

// Options are what an API needs beside its service.
type Options struct {
	// PublicURL is the address clients use, without /v1.
	PublicURL string
	// Version is shown in the OpenAPI document.
	Version string
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// TemporalReady asks whether Temporal answers; nil means it is not asked.
	TemporalReady func(context.Context) error
	// BodyTimeout is how long a body may take to arrive; 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// CallTimeout is how long a call may take; 0 means DefaultCallTimeout. What
	// waits for the database longer is answered unavailable.
	CallTimeout time.Duration
	// Tracer makes a span of each call; nil makes none.
	Tracer trace.Tracer
	// Metrics is where the API's metrics are registered; nil means nowhere.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// The defaults of Options.
const (
	DefaultBodyTimeout = 20 * time.Second
	DefaultCallTimeout = 25 * time.Second
)

// API answers HTTP. It is safe for concurrent use.
type API struct {
	service *service.Service
	options Options
	log     *slog.Logger
	tracer  trace.Tracer
	metrics *metrics
	engine  *gin.Engine
	huma    huma.API
	phase   atomic.Int32
}

// The phases of an API's life; it is made serving.
const (
	phaseServing  int32 = iota
	phaseStarting       // calls are answered unavailable
	phaseDraining       // calls are served, on connections that end with them
)

// Hold answers every call unavailable until Serve is called.
func (a *API) Hold() { a.phase.Store(phaseStarting) }

// Serve lets calls in.
func (a *API) Serve() { a.phase.Store(phaseServing) }

// Drain says that the API is about to end: it is not ready any more, so that load
// balancers send their calls elsewhere, and serves those that still come.
func (a *API) Drain() { a.phase.Store(phaseDraining) }

// humaHooks guards huma's package-wide error hook: every API of a process
// shares one, which finds its API in the call's context.
var humaHooks sync.Once

// New returns an API on the service.
func New(s *service.Service, options Options) (*API, error) {
	if options.Log == nil {
		options.Log = slog.Default()
	}
	if options.BodyTimeout == 0 {
		options.BodyTimeout = DefaultBodyTimeout
	}
	if options.CallTimeout == 0 {
		options.CallTimeout = DefaultCallTimeout
	}
	a := &API{service: s, options: options, log: options.Log, tracer: options.Tracer}
	var err error
	if a.metrics, err = newMetrics(options.Metrics); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	humaHooks.Do(hookHuma)
	gin.SetMode(gin.ReleaseMode)
	a.engine = gin.New()
	a.engine.HandleMethodNotAllowed = true
	a.engine.RedirectTrailingSlash = false
	a.engine.Use(a.begin, harden, a.recover)
	a.engine.GET("/livez", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	a.engine.GET("/readyz", a.ready)
	a.engine.Use(a.hold)
	a.engine.NoRoute(func(c *gin.Context) {
		a.refuse(c, models.Errorf(models.CodeNotFound, "There is no such record, or the integration may not read it."))
	})
	a.engine.NoMethod(func(c *gin.Context) {
		a.refuse(c, models.Errorf(models.CodeMethodNotAllowed, "The path does not take this method."))
	})
	a.huma = humagin.NewWithGroup(a.engine, a.engine.Group("/v1"), a.openAPIConfig())
	a.huma.UseMiddleware(a.admit, a.readBody)
	a.registerMe()
	a.registerWorkOrders()
	a.registerWorkOrderChanges()
	a.registerFeedback()
	a.registerInventory()
	a.registerForms()
	a.registerPeople()
	a.registerOAuth()
	a.serveOpenAPI()
	return a, nil
}

// ServeHTTP answers one call. HEAD is answered as GET; the server leaves the
// body away (RFC 9110 section 9.3.2).
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	a.engine.ServeHTTP(w, r)
}

// apiKey finds the API of a call's context, for huma's package-wide hook.
type apiKey struct{}

func hookHuma() {
	huma.ValidateStrictCasing = true
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		if a, ok := ctx.Context().Value(apiKey{}).(*API); ok {
			return a.humaProblem(ctx.Context(), status, message, errs...)
		}
		return huma.NewError(status, message, errs...)
	}
	// The error's type is asked for when operations are documented.
	huma.NewError = func(status int, message string, _ ...error) huma.StatusError {
		return &Problem{Status: status, Detail: message}
	}
}

// saneRequestID is what a caller's own X-Request-Id must look like to be kept.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// begin gives the call its id, its span and its place in the context; at its end
// it is counted and logged.
func (a *API) begin(c *gin.Context) {
	started := a.service.Now()
	a.metrics.inFlight.Inc()
	defer a.metrics.inFlight.Dec()
	id := c.GetHeader("X-Request-Id")
	if !saneRequestID.MatchString(id) {
		made, err := models.NewID(models.PrefixRequest, started, a.service.Random)
		if err != nil {
			made = "req_unknown"
		}
		id = made
	}
	state := &call{requestID: id, method: c.Request.Method, path: c.Request.URL.Path}
	route := c.FullPath()
	ctx, span := a.startSpan(c.Request, route)
	ctx, cancel := context.WithTimeout(ctx, a.options.CallTimeout)
	defer cancel()
	ctx = context.WithValue(withCall(ctx, state), apiKey{}, a)
	c.Request = c.Request.WithContext(ctx)
	c.Header("X-Request-Id", id)
	if a.phase.Load() == phaseDraining {
		c.Header("Connection", "close")
	}
	defer func() {
		status, took := c.Writer.Status(), a.service.Now().Sub(started)
		endSpan(span, state, route, status)
		a.metrics.answered(knownMethod(state.method), route, status, state.code, took)
		a.logCall(ctx, state, route, status, took)
	}()
	c.Next()
}

// probes are the routes that orchestrators ask all the time.
var probes = []string{"/livez", "/readyz"}

// logCall writes the access log: a line for each call, without its path and
// query, which may hold what people wrote.
func (a *API) logCall(ctx context.Context, state *call, route string, status int, took time.Duration) {
	level := slog.LevelInfo
	if slices.Contains(probes, route) && status == http.StatusOK {
		level = slog.LevelDebug
	}
	attributes := []slog.Attr{
		slog.String("request_id", state.requestID), slog.String("method", knownMethod(state.method)), slog.String("route", route),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("integration_id", state.caller.IdentityID),
	}
	if state.code != "" {
		attributes = append(attributes, slog.String("code", string(state.code)))
	}
	a.log.LogAttrs(ctx, level, "call", attributes...)
}

// hold refuses calls while the API starts.
func (a *API) hold(c *gin.Context) {
	if a.phase.Load() == phaseStarting {
		a.write(c, a.problem(c.Request.Context(), models.Errorf(models.CodeUnavailable, "The service is starting. Try again in a few seconds.")))
	}
}

// recover turns a panic into an internal problem.
func (a *API) recover(c *gin.Context) {
	defer func() {
		if caught := recover(); caught != nil {
			if err, ok := caught.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(caught)
			}
			a.write(c, a.problem(c.Request.Context(), fmt.Errorf("panic: %v", caught)))
		}
	}()
	c.Next()
}

// refuse answers a call that reached no operation; such calls are counted by client address.
func (a *API) refuse(c *gin.Context, err error) {
	if limited := a.countAddress(c); limited != nil {
		err = limited
	}
	a.write(c, a.problem(c.Request.Context(), err))
}

// countAddress counts a call without a token and sets the rate headers.
func (a *API) countAddress(c *gin.Context) error {
	rate, err := a.service.CountAddress(c.Request.Context(), clientAddress(c.Request, a.options.TrustedProxies))
	callOf(c.Request.Context()).rate = rate
	a.rateHeaders(c.Writer.Header(), rate)
	return err
}

func (a *API) write(c *gin.Context, p *Problem) {
	for name, values := range p.headers {
		for _, v := range values {
			c.Writer.Header().Add(name, v)
		}
	}
	body, err := service.Encode(p)
	if err != nil {
		a.log.Error("a problem cannot be encoded", "error", err.Error())
	}
	c.Abort()
	c.Data(p.Status, p.ContentType(""), body)
}

// admit lets the call in or refuses it: token, integration, count, scope.
func (a *API) admit(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	state := callOf(ctx.Context())
	token, sent := bearer(ctx.Header("Authorization"))
	state.tokenSent = sent
	var err error = models.Errorf(models.CodeInvalidToken, "The call carries no access token.")
	if sent {
		state.caller, state.rate, err = a.service.Admit(ctx.Context(), token, recordRead(ctx))
	}
	if code := models.CodeOf(err); code == models.CodeInvalidToken || code == models.CodeUnavailable {
		if limited := a.countAddress(c); limited != nil && code == models.CodeInvalidToken {
			err = limited
		}
	} else {
		a.rateHeaders(c.Writer.Header(), state.rate)
	}
	if err == nil {
		err = requireScope(ctx.Operation(), state.caller.Scopes)
	}
	if err == nil {
		err = vetQuery(c.Request.URL.RawQuery)
	}
	if err != nil {
		a.write(c, a.problem(ctx.Context(), err))
		return
	}
	next(ctx)
}

// recordRead is the id of the record that the call reads, "" when it does something else.
func recordRead(ctx huma.Context) string {
	if op := ctx.Operation(); op.Method == http.MethodGet && strings.HasSuffix(op.Path, "/{id}") {
		return ctx.Param("id")
	}
	return ""
}

// bearer returns the token of an Authorization header and whether one was sent.
func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// scopeKey is where an operation's metadata names its scope.
const scopeKey = "scope"

func requireScope(op *huma.Operation, held models.Scopes) error {
	scope, needed := op.Metadata[scopeKey].(models.Scope)
	if !needed || held.Has(scope) {
		return nil
	}
	err := models.Errorf(models.CodeInsufficientScope, "The token lacks the scope %s.", scope)
	err.Scope = scope
	return err
}

// vetQuery refuses query strings that are malformed, repeat a parameter, or hold
// text that no record can. Errors: invalid_request.
func vetQuery(raw string) error {
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return models.Errorf(models.CodeInvalidRequest, "The query string is malformed.")
	}
	for name, values := range query {
		if len(values) > 1 {
			return models.Errorf(models.CodeInvalidRequest, "A query parameter is repeated.")
		}
		if !models.IsText(name + values[0]) {
			return models.Errorf(models.CodeInvalidRequest, "A query parameter is not UTF-8 text.")
		}
	}
	return nil
}

// readBody reads and vets the body of operations that take one, and leaves it
// for huma to decode.
func (a *API) readBody(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().RequestBody != nil {
		c := humagin.Unwrap(ctx)
		body, err := a.readJSON(c.Writer, c.Request)
		if err != nil {
			// What is left of the body is not worth waiting for.
			c.Header("Connection", "close")
			a.write(c, a.problem(ctx.Context(), err))
			return
		}
		if err := a.refuseNulls(ctx.Operation(), body); err != nil {
			a.write(c, a.problem(ctx.Context(), err))
			return
		}
		callOf(ctx.Context()).body = body
		c.Request.Body = newBody(body)
	}
	next(ctx)
}

// register adds an operation whose handler returns plain errors.
func register[I, O any](a *API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = -1    // readJSON bounds it
	op.BodyReadTimeout = -1 // the server bounds it
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return out, nil
	})
}

// writes documents what a write answers on success.
func writes[T any](a *API, status string, description string) map[string]*huma.Response {
	return map[string]*huma.Response{status: {
		Description: description,
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")},
		},
	}}
}

// reads documents what a read answers on success, or when nothing changed.
func reads[T any](a *API, description string) map[string]*huma.Response {
	responses := writes[T](a, "200", description)
	responses["304"] = &huma.Response{Description: "Nothing changed since the answer with the ETag of If-None-Match."}
	return responses
}

// The statuses that operations of one kind answer beside success.
var (
	readErrors   = []int{401, 403, 404, 429, 503}
	listErrors   = []int{400, 401, 403, 410, 429, 503}
	createErrors = []int{400, 401, 403, 408, 413, 415, 422, 429, 503}
	changeErrors = []int{400, 401, 403, 404, 408, 412, 413, 415, 422, 429, 503}
)

func (a *API) ready(c *gin.Context) {
	ctx := c.Request.Context()
	if a.phase.Load() == phaseDraining {
		c.String(http.StatusServiceUnavailable, "not ready: this server is being shut down\n")
		return
	}
	err := a.service.CheckSchema(ctx)
	if err == nil && c.Query("temporal") == "1" && a.options.TemporalReady != nil {
		err = a.options.TemporalReady(ctx)
	}
	if err != nil {
		c.String(http.StatusServiceUnavailable, "not ready: %s\n", err)
		return
	}
	c.String(http.StatusOK, "ok\n")
}
