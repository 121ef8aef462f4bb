package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"millwright/web"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load. Its URL names its content, so that browsers keep it
// forever.
type asset struct {
	url, kind string
	serve     gin.HandlerFunc
}

// assets are the files that pages load, by name: one style sheet, one script, the icon.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	for name, parts := range map[string][]string{
		"console.css": globAssets("assets/css/*.css"),
		"console.js":  {"assets/htmx/htmx.min.js", "assets/console.js"},
		"icon.svg":    {"assets/icon.svg"},
	} {
		var content []byte
		for _, part := range parts {
			text, err := assetFiles.ReadFile(part)
			if err != nil {
				panic(err) // impossible: the files are embedded
			}
			content = append(append(content, text...), '\n')
		}
		sum := sha256.Sum256(content)
		base, extension, _ := strings.Cut(name, ".")
		all[name] = asset{
			url:   Root + "/assets/" + base + "-" + base64.RawURLEncoding.EncodeToString(sum[:9]) + "." + extension,
			kind:  assetKinds[path.Ext(name)],
			serve: web.Static(content),
		}
	}
	return all
})

// globAssets returns the embedded files that match, in the order of their names.
func globAssets(pattern string) []string {
	names, err := fs.Glob(assetFiles, pattern)
	if err != nil {
		panic(err) // impossible: the pattern is valid
	}
	slices.Sort(names)
	return names
}

var assetKinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func assetURL(name string) string { return assets()[name].url }

// assetRoutes returns the handlers of the assets by their routes below Root. An asset of
// another version of the program is not found: its page is reloaded.
func assetRoutes() map[string]gin.HandlerFunc {
	routes := map[string]gin.HandlerFunc{}
	for _, a := range assets() {
		routes[strings.TrimPrefix(a.url, Root)] = func(g *gin.Context) {
			g.Header("Content-Type", a.kind)
			g.Header("Cache-Control", "public, max-age=31536000, immutable")
			a.serve(g)
		}
	}
	return routes
}
