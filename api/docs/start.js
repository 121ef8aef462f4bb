// Shows the OpenAPI document of the server the page comes from, and nothing of any other.
window.ui = SwaggerUIBundle({
  url: "v1/openapi.json",
  dom_id: "#page",
  layout: "BaseLayout",
  presets: [SwaggerUIBundle.presets.apis],
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
});
