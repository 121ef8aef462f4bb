package api

//go:generate go run ../cmd/millwright openapi --output openapi.json

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"millwright/service"
)

// serveOpenAPI completes the document of the registered operations and serves it,
// with a page that renders it.
func (a *API) serveOpenAPI() {
	a.documentOAuth()
	a.completeOperations()
	a.documentWebhooks()
	encoded := sync.OnceValues(a.OpenAPI)
	a.engine.GET("/v1/openapi.json", func(c *gin.Context) {
		err := a.countAddress(c)
		var document []byte
		if err == nil {
			document, err = encoded()
		}
		if err != nil {
			a.respondProblem(c, err)
			return
		}
		c.Data(http.StatusOK, "application/vnd.oai.openapi+json;version=3.1", document)
	})
	a.serveDocs()
}

// OpenAPI returns the OpenAPI 3.1 document of the API, indented.
func (a *API) OpenAPI() ([]byte, error) {
	document, err := json.MarshalIndent(refined(a.huma.OpenAPI()), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return append(document, '\n'), nil
}

// Document returns the OpenAPI document as it is committed, with a relative server
// URL.
func Document() ([]byte, error) {
	return New(&service.Service{}, Options{Log: slog.New(slog.DiscardHandler)}).OpenAPI()
}
