// Package docs has the pages that the service shows at /docs.
package docs

import "embed"

// Guides are the pages for integrators, in the order in which they are listed: file names
// without .md.
var Guides = []string{"integrating", "receiving-webhooks", "api", "versioning"}

// Files has the guides, and the Postman collection that they link to.
//
//go:embed integrating.md receiving-webhooks.md api.md versioning.md postman.json
var Files embed.FS
