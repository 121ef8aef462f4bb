package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
)

// minCompressed is the size in bytes from which a response is compressed: below it,
// the time to compress costs more than the bytes saved.
const minCompressed = 1 << 10

var acceptEncoding = []string{"Accept-Encoding"}

// Compress returns middleware that compresses responses with gzip if the client accepts
// it, except those for whose headers plain returns true: the length of a compressed
// secret reveals parts of it. The ETag stays that of the record, so that If-Match and
// If-None-Match work with either form.
func Compress(plain func(http.Header) bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header()["Vary"] = acceptEncoding
		if !AcceptsGzip(c.GetHeader("Accept-Encoding")) {
			c.Next()
			return
		}
		w := &gzipWriter{ResponseWriter: c.Writer, plain: plain}
		c.Writer = w
		c.Next()
		// Not deferred: a response that a panic cuts short must not look complete.
		w.close()
	}
}

// AcceptsGzip reports whether an Accept-Encoding header prefers gzip to the plain
// response, or accepts both alike (RFC 9110 section 12.5.3).
func AcceptsGzip(header string) bool {
	const unnamed = -1
	packed, plain, others := float64(unnamed), 0.0, 0.0
	for item := range strings.SplitSeq(header, ",") {
		coding, parameter, weighted := strings.Cut(item, ";")
		weight := 1.0
		if weighted {
			weight = weightOf(parameter)
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			packed = weight
		case "identity":
			plain = weight
		case "*":
			others = weight
		}
	}
	if packed == unnamed {
		packed = others
	}
	return packed > 0 && packed >= plain
}

// weightOf returns the value of a parameter q, 0 for anything else.
func weightOf(parameter string) float64 {
	name, value, _ := strings.Cut(parameter, "=")
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 0
	}
	return weight
}

// gzipWriters keeps compressors: a new one allocates more than a megabyte.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // impossible: the level is valid
	}
	return w
}}

// gzipWriter compresses a body whose first piece has at least minCompressed bytes.
// Handlers write a body in one piece.
type gzipWriter struct {
	gin.ResponseWriter
	begun bool
	plain func(http.Header) bool
	// packer is nil if the body is not compressed.
	packer *gzip.Writer
}

func (w *gzipWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.begin(len(b))
	}
	if w.packer == nil {
		return w.ResponseWriter.Write(b)
	}
	return w.packer.Write(b)
}

func (w *gzipWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Unwrap returns the connection's writer, for deadlines.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin decides whether to compress a body that starts with this many bytes.
func (w *gzipWriter) begin(size int) {
	h := w.Header()
	if size < minCompressed || h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" || w.plain(h) {
		return
	}
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	w.packer, _ = gzipWriters.Get().(*gzip.Writer)
	w.packer.Reset(w.ResponseWriter)
}

// close ends the compressed body. If it cannot be written, the client has gone.
func (w *gzipWriter) close() {
	if w.packer == nil {
		return
	}
	_ = w.packer.Close()
	gzipWriters.Put(w.packer)
}

// Gzipped returns the content compressed, nil if that does not make it smaller.
func Gzipped(content []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	if packed.Len() >= len(content) {
		return nil
	}
	return packed.Bytes()
}
