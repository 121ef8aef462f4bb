package temporal

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"millwright/dev/process"
)

// startUI serves the Web UI in the background, until the process ends.
func startUI(port, uiPort int) error {
	handler, err := uiHandler(port)
	if err != nil {
		return fmt.Errorf("cannot set up the Temporal Web UI: %w", err)
	}
	listener, err := net.Listen("tcp", process.Address(uiPort))
	if err != nil {
		return fmt.Errorf("cannot serve the Temporal Web UI: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// uiHandler puts the Web UI's parts together as its own server does, which offers no
// place to check the Host header.
func uiHandler(port int) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(&config.Config{
		Host:                process.Loopback,
		TemporalGRPCAddress: process.Address(port),
		EnableUI:            true,
		DefaultNamespace:    Namespace,
		// Without this the browser would not send the cookie over plain HTTP.
		CORS:             config.CORS{CookieInsecure: true},
		DisableNewsFetch: true,
		HideLogs:         true,
	})
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	pages, err := fs.Sub(assets, "local")
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(), csrf.EnsureTokenCookie(false),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, []api.Middleware{
		headers.WithForwardHeaders([]string{auth.AuthorizationExtrasHeader, "Caller-Type"}),
	}); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	if err := route.SetUIRoutes(e, "", pages, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return localHosts(e), nil
}

// localHosts rejects requests for host names other than localhost: anyone who reaches
// the Web UI can terminate workflows, so a web page whose name was made to resolve to
// this machine (DNS rebinding) must not. No page can take an IP address as its name.
func localHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !strings.EqualFold(host, "localhost") {
			http.Error(w, "The Temporal Web UI is served to this machine only, as localhost.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
