package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"millwright/models"
	"millwright/service"
	"millwright/web"
)

// Options configure an API.
type Options struct {
	// PublicURL is the address clients use, without /v1.
	PublicURL string
	// Version is the server's version, shown in the OpenAPI document.
	Version string
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// TemporalReady returns an error while Temporal is unreachable. If nil, the
	// readiness probe does not check Temporal.
	TemporalReady func(context.Context) error
	// BodyTimeout limits the time a body may take to arrive; 0 means 20 seconds.
	BodyTimeout time.Duration
	// CallTimeout limits the time a call may take; 0 means 25 seconds. A
	// call that waits longer for the database gets 503 unavailable.
	CallTimeout time.Duration
	// LimitDelay delays the response to a call over its limit; 0 means no delay.
	LimitDelay time.Duration
	// UnknownPage serves unknown paths that a browser opens; nil means a problem like for
	// any other client.
	UnknownPage http.Handler
	// Tracer creates a span for each call; nil creates none.
	Tracer trace.Tracer
	// Metrics registers the API's metrics; nil registers none.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// API serves HTTP. It is safe for concurrent use.
type API struct {
	service *service.Service
	options Options
	log     *slog.Logger
	metrics *metrics
	engine  *gin.Engine
	handler http.Handler // the engine, with compression
	huma    huma.API
	phase   atomic.Int32
	delayed web.Delay
	// readiness answers the readiness probes, without and with Temporal.
	readiness map[bool]*readiness
}

// Phases of an API. A new one is serving.
const (
	phaseServing  int32 = iota
	phaseStarting       // calls get 503 unavailable
	phaseDraining       // calls are served, and their connections closed
)

// Hold rejects every call with 503 unavailable until Serve is called.
func (a *API) Hold() { a.phase.Store(phaseStarting) }

// Serve admits calls.
func (a *API) Serve() { a.phase.Store(phaseServing) }

// Drain announces a shutdown: the readiness probe fails, so that load balancers
// send calls elsewhere. Calls that still arrive are served.
func (a *API) Drain() { a.phase.Store(phaseDraining) }

// New returns an API on the service. It panics if its metrics are registered.
func New(s *service.Service, options Options) *API {
	options.Log = cmp.Or(options.Log, slog.Default())
	options.BodyTimeout = cmp.Or(options.BodyTimeout, 20*time.Second)
	options.CallTimeout = cmp.Or(options.CallTimeout, 25*time.Second)
	a := &API{
		service: s, options: options, log: options.Log, metrics: newMetrics(options.Metrics), readiness: map[bool]*readiness{false: {}, true: {}},
	}
	a.newEngine()
	humaHooks.Do(setHumaHooks)
	a.huma = humagin.NewWithGroup(a.engine, a.engine.Group("/v1"), a.openAPIConfig())
	a.huma.UseMiddleware(a.receiveBody, a.admit, a.readBody)
	for _, op := range a.operations() {
		a.register(op)
	}
	a.registerOAuth()
	a.serveOpenAPI()
	return a
}

// newEngine makes the Gin engine with its middleware and the probes. The probes
// work in every phase.
func (a *API) newEngine() {
	gin.SetMode(gin.ReleaseMode)
	a.engine = gin.New()
	a.engine.HandleMethodNotAllowed = true
	a.engine.RedirectTrailingSlash = false
	a.handler = web.Compress(a.engine)
	a.engine.Use(a.begin, setHeaders, a.recover)
	a.engine.GET("/livez", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	a.engine.GET("/readyz", a.ready)
	a.engine.Use(a.showRate, a.hold, a.requireOneAuthorization)
	a.engine.NoRoute(a.unknownPath)
	a.engine.NoMethod(func(c *gin.Context) {
		// Gin does not know that ServeHTTP handles HEAD as GET.
		c.Header("Allow", strings.Replace(c.Writer.Header().Get("Allow"), http.MethodGet, http.MethodGet+", "+http.MethodHead, 1))
		a.reject(c, models.Errorf(models.CodeMethodNotAllowed, "The path does not support this method."))
	})
}

// operations are the rows of every table of operations. The OAuth endpoints are
// not among them: they take forms and respond as RFC 6749 requires.
func (a *API) operations() []operation {
	return slices.Concat(
		a.integrationOperations(), a.workOrderOperations(), a.workOrderActions(), a.feedbackOperations(),
		a.inventoryOperations(), a.catalogOperations(),
	)
}

// ServeHTTP serves one call. HEAD is handled as GET: the server omits the body
// (RFC 9110 section 9.3.2).
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	a.handler.ServeHTTP(w, r)
}

// Probes serves only the probes, for a listener that clients do not reach.
func (a *API) Probes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range probes {
		mux.Handle("GET "+path, a)
	}
	return mux
}

// probes are the routes that orchestrators call every few seconds.
var probes = []string{"/livez", "/readyz"}

// ready responds to the readiness probe. It checks Temporal only for ?temporal=1.
func (a *API) ready(c *gin.Context) {
	ctx := c.Request.Context()
	if a.phase.Load() == phaseDraining {
		c.String(http.StatusServiceUnavailable, "not ready: the server is shutting down\n")
		return
	}
	withTemporal := c.Query("temporal") == "1" && a.options.TemporalReady != nil
	err := a.readiness[withTemporal].ask(ctx, func(ctx context.Context) error {
		if err := a.service.Store.CheckSchema(ctx); err != nil || !withTemporal {
			return err
		}
		return a.options.TemporalReady(ctx)
	})
	if err != nil {
		c.String(http.StatusServiceUnavailable, "not ready: %s\n", err)
		return
	}
	c.String(http.StatusOK, "ok\n")
}
