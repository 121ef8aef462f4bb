package api

//go:generate go run ../cmd/millwright openapi --output openapi.json

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"millwright/service"
)

// documentVersion is the version of the document, raised with the API it
// describes: the middle number when something is added. A change that breaks
// clients would be /v2.
const documentVersion = "1.0.0"

// openAPIConfig is huma's, bent to the contract: no $schema links, unknown query
// parameters refused, arrays never null.
func (a *API) openAPIConfig() huma.Config {
	huma.DefaultArrayNullable = false
	config := huma.DefaultConfig("Millwright", documentVersion)
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format} // "json" stands for +json
	config.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	a.describe(config.OpenAPI)
	return config
}

// marshal writes every body alike, whoever answers.
func marshal(w io.Writer, value any) error {
	body, err := service.Encode(value)
	if err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// schemaPrefix is where the document keeps its schemas.
const schemaPrefix = "#/components/schemas/"

// schemaName names schemas after what they describe: WorkOrder, WorkOrderPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if inner, isPage := strings.CutPrefix(name, "Page"); isPage {
		name = inner + "Page"
	}
	return strings.ReplaceAll(name, "Record", "")
}

// serveOpenAPI completes the document of every operation registered so far and
// publishes it, with a page for people.
func (a *API) serveOpenAPI() {
	a.documentOAuth()
	a.completeOperations()
	a.documentWebhooks()
	made := sync.OnceValues(a.OpenAPI)
	a.engine.GET("/v1/openapi.json", func(c *gin.Context) {
		err := a.countAddress(c)
		var document []byte
		if err == nil {
			document, err = made()
		}
		if err != nil {
			a.write(c, a.problem(c.Request.Context(), err))
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

// Document returns the OpenAPI document as it is committed: it belongs to no
// server, so its address is relative.
func Document() ([]byte, error) {
	a, err := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return a.OpenAPI()
}
