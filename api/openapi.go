package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"millwright/service"
)

// openAPIConfig is huma's, bent to the contract: no $schema links, unknown query
// parameters refused, arrays never null.
func (a *API) openAPIConfig() huma.Config {
	huma.DefaultArrayNullable = false
	config := huma.DefaultConfig("Millwright", a.options.Version)
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format} // "json" stands for +json
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Info.Description = "Integration API of a facility-maintenance service: inventory, work orders, feedback, forms and answers, " +
		"people and teams, and signed webhooks."
	config.Servers = []*huma.Server{{URL: a.options.PublicURL + "/v1"}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":  {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "An access token of POST /oauth/token."},
		"client": {Type: "http", Scheme: "basic", Description: "Client id and client secret."},
	}
	config.Security = []map[string][]string{{"token": {}}}
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

// schemaName names schemas after what they describe: WorkOrder, WorkOrderPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if inner, isPage := strings.CutPrefix(name, "Page"); isPage {
		name = inner + "Page"
	}
	return strings.ReplaceAll(name, "Record", "")
}

// serveOpenAPI publishes the document of every operation registered so far.
func (a *API) serveOpenAPI() {
	document, err := a.OpenAPI()
	if err != nil {
		panic(err) // operations are fixed when the program is built; a test makes the document
	}
	a.engine.GET("/v1/openapi.json", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/vnd.oai.openapi+json;version=3.1", document)
	})
}

// OpenAPI returns the OpenAPI 3.1 document of the API, indented.
func (a *API) OpenAPI() ([]byte, error) {
	document, err := json.MarshalIndent(a.huma.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return append(document, '\n'), nil
}
