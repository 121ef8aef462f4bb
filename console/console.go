package console

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"millwright/models"
	"millwright/service"
	"millwright/web"
)

// Root is the path of every page.
const Root = "/console"

// Options configure a Console. PublicURL, RequestTimeout and Log are required.
type Options struct {
	// PublicURL is the address people use. With https, cookies are only sent over TLS.
	PublicURL string
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// RequestTimeout limits the time a request may take.
	RequestTimeout time.Duration
	// BodyTimeout limits the time a form may take to arrive; 0 means 20 seconds.
	BodyTimeout time.Duration
	// FailureDelay is the minimum duration of a failed sign-in, so that its time reveals
	// nothing, and how long a request far over a limit waits; 0 means no delay.
	FailureDelay time.Duration
	// Tester has workers send tests to webhook addresses; without it none are sent.
	Tester AddressTester
	// OpenID is a provider with which people sign in, besides passwords; nil without one.
	OpenID *OpenIDOptions
	// WorkflowsURL is where Temporal's UI shows the workflows of the namespace, without the
	// slash before an id; without it, pages have no links to workflows.
	WorkflowsURL string
	// Metrics registers the console's metrics; nil registers none.
	Metrics prometheus.Registerer
	Log     *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	service *service.Service
	options Options
	log     *slog.Logger
	metrics *metrics
	engine  *gin.Engine
	handler http.Handler // the engine, with compression
	// guard rejects writes that another site makes a browser send.
	guard *http.CrossOriginProtection
	// secure is whether the public URL is https.
	secure bool
	// delayed are requests over a limit.
	delayed web.Delay
	// openID is nil without a provider, provider the zero value.
	openID   *openID
	provider OpenIDOptions
	// background is work that continues after a response.
	background sync.WaitGroup
}

// New returns a console on the service. It fails if an option is malformed.
func New(s *service.Service, options Options) (*Console, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.BodyTimeout = cmp.Or(options.BodyTimeout, 20*time.Second)
	u, err := url.Parse(options.PublicURL)
	if err != nil || u.Host == "" {
		return nil, errors.New("the console needs its public URL")
	}
	c := &Console{
		service: s, options: options, log: options.Log, guard: http.NewCrossOriginProtection(),
		secure: u.Scheme == "https", metrics: newMetrics(options.Metrics),
	}
	if options.OpenID != nil {
		c.openID, c.provider = newOpenID(*options.OpenID, options.PublicURL), *options.OpenID
	}
	if err := c.guard.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
		return nil, err
	}
	c.newEngine()
	return c, nil
}

// Owns reports whether the path is the console's: its pages, and the front page, which
// redirects to it.
func Owns(path string) bool {
	return path == "/" || path == Root || strings.HasPrefix(path, Root+"/")
}

// ServeHTTP serves one request. HEAD is handled as GET: the server omits the body.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	c.handler.ServeHTTP(w, r)
}

func (c *Console) newEngine() {
	gin.SetMode(gin.ReleaseMode)
	c.engine = gin.New()
	c.engine.HandleMethodNotAllowed = true
	c.engine.RedirectTrailingSlash = false
	// Secrets are only in responses to POSTs, which no other site can cause, so their length
	// reveals them to no one.
	c.handler = web.Compress(c.engine)
	c.engine.Use(c.begin, setHeaders, c.recover, c.limitVisitors, c.checkOrigin)
	c.engine.NoRoute(c.public(func(*request) error { return models.NotFound() }))
	c.engine.NoMethod(c.public(func(*request) error { return errMethod }))
	c.engine.GET("/", func(g *gin.Context) { g.Redirect(http.StatusFound, Root) })
	pages := c.engine.Group(Root)
	for route, serve := range assetRoutes() {
		pages.GET(route, serve)
	}
	c.routes(pages)
}

// routes registers the pages. Each topic's routes are next to its handlers.
func (c *Console) routes(pages *gin.RouterGroup) {
	for _, topic := range []func(*gin.RouterGroup){
		c.startRoutes, c.stuckRoutes, c.signInRoutes, c.linkRoutes, c.openIDRoutes, c.recentRoutes, c.openIDRequiredRoutes, c.accountRoutes, c.workOrderListRoutes, c.peopleRoutes, c.teamRoutes, c.formRoutes, c.logRoutes,
		c.noticeRoutes, c.feedbackRoutes, c.workOrderNewRoutes, c.workOrderEditRoutes, c.workOrderRoutes, c.workOrderSelectedRoutes, c.workOrderIntegrationRoutes, c.commentRoutes, c.inventoryRoutes, c.integrationRoutes, c.webhookRoutes, c.deliveryRoutes, c.chartRoutes, c.searchRoutes,
	} {
		topic(pages)
	}
}

// handler serves a page. An error becomes an error page (errors.go).
type handler func(*request) error

// public serves a page that needs no sign-in. A person who is signed in is known all the same.
func (c *Console) public(serve handler) gin.HandlerFunc { return c.handle(false, serve) }

func (c *Console) handle(polled bool, serve handler) gin.HandlerFunc {
	return func(g *gin.Context) {
		r := &request{Context: g, console: c, polled: polled}
		err := r.loadViewer()
		if err == nil {
			err = r.serve(serve)
		}
		if err != nil {
			r.fail(err)
		}
	}
}

// signedIn serves a page to people who are signed in; others sign in first.
func (c *Console) signedIn(serve handler) gin.HandlerFunc { return c.public(asSignedIn(serve)) }

// polled is signedIn for requests that a page makes by itself.
func (c *Console) polled(serve handler) gin.HandlerFunc { return c.handle(true, asSignedIn(serve)) }

func asSignedIn(serve handler) handler {
	return func(r *request) error {
		if !r.isSignedIn() {
			return r.askToSignIn()
		}
		return serve(r)
	}
}
