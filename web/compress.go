package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// minCompressed is the size in bytes from which a response is compressed: below it,
// the time to compress costs more than the bytes saved.
const minCompressed = 1 << 10

// Compress has the handler's responses compressed with zstd or gzip if the client accepts it,
// except those that have NoCompression. The ETag stays that of the record, so that If-Match and
// If-None-Match work with either form.
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // impossible: the options are valid
	}
	return wrap(h)
}

// NoCompression is a header, never sent, of responses that are not compressed: the length of a
// compressed secret reveals parts of it.
const NoCompression = gzhttp.HeaderNoCompression

// Static returns a handler that responds with the content, which never changes. The handler's
// caller sets the headers.
func Static(content []byte) gin.HandlerFunc {
	return func(c *gin.Context) {
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(content))
	}
}
