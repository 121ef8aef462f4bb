package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// minCompressed is the size in bytes from which a response is compressed: below it,
// the time to compress costs more than the bytes saved.
const minCompressed = 1 << 10

var acceptEncoding = []string{"Accept-Encoding"}

// Compress returns middleware that compresses responses with zstd or gzip if the client
// accepts it, except those for whose headers plain returns true: the length of a compressed
// secret reveals parts of it. The ETag stays that of the record, so that If-Match and
// If-None-Match work with either form.
func Compress(plain func(http.Header) bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header()["Vary"] = acceptEncoding
		accepted := c.GetHeader("Accept-Encoding")
		if accepted == "" {
			c.Next()
			return
		}
		w := &packedWriter{ResponseWriter: c.Writer, accepted: accepted, plain: plain}
		c.Writer = w
		c.Next()
		// Not deferred: a response that a panic cuts short must not look complete.
		w.close()
	}
}

// The content codings of responses.
const (
	codingGzip = "gzip"
	codingZstd = "zstd"
)

// weights are the weights of an Accept-Encoding header (RFC 9110 section 12.5.3).
type weights struct {
	named map[string]float64
	// others is the weight of codings that are not named.
	others float64
}

func weightsOf(header string) weights {
	w := weights{named: map[string]float64{}}
	for item := range strings.SplitSeq(header, ",") {
		coding, parameter, weighted := strings.Cut(item, ";")
		weight := 1.0
		if weighted {
			weight = weightOf(parameter)
		}
		switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
		case "*":
			w.others = weight
		case "x-gzip":
			w.named[codingGzip] = weight
		default:
			w.named[coding] = weight
		}
	}
	return w
}

// of returns the weight of a coding and whether the header names it.
func (w weights) of(coding string) (weight float64, named bool) {
	if weight, named = w.named[coding]; named {
		return weight, true
	}
	return w.others, false
}

// accepts reports whether the header prefers the coding to the plain response, or accepts
// both alike.
func (w weights) accepts(coding string) bool {
	weight, _ := w.of(coding)
	return weight > 0 && weight >= w.named["identity"]
}

// coding returns the coding for a response, "" for uncompressed: the one that the header prefers,
// of two that it accepts alike zstd if it is named, since not every client that sends * knows it.
func (w weights) coding() string {
	ofGzip, _ := w.of(codingGzip)
	ofZstd, named := w.of(codingZstd)
	switch {
	case w.accepts(codingZstd) && (ofZstd > ofGzip || ofZstd == ofGzip && named):
		return codingZstd
	case w.accepts(codingGzip):
		return codingGzip
	}
	return ""
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

// packer is a compressor.
type packer interface {
	io.WriteCloser
	Reset(io.Writer)
}

// packers keep compressors by coding: a new one allocates up to a megabyte.
var packers = map[string]*sync.Pool{
	codingGzip: {New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		return mustPacker(w, err)
	}},
	codingZstd: {New: func() any {
		// In the goroutine of the call. The window is small, as most responses are.
		w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow))
		return mustPacker(w, err)
	}},
}

// zstdWindow is the distance within which zstd finds repetitions, in bytes.
const zstdWindow = 128 << 10

func mustPacker(p packer, err error) packer {
	if err != nil {
		panic(err) // impossible: the options are valid
	}
	return p
}

// packedWriter compresses a body whose first piece has at least minCompressed bytes.
// Handlers write a body in one piece.
type packedWriter struct {
	gin.ResponseWriter
	// accepted is the call's Accept-Encoding; it is read only for a body that is large enough.
	accepted string
	begun    bool
	plain    func(http.Header) bool
	// packer is nil if the body is not compressed, coding is its coding.
	packer packer
	coding string
}

func (w *packedWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.begin(len(b))
	}
	if w.packer == nil {
		return w.ResponseWriter.Write(b)
	}
	return w.packer.Write(b)
}

func (w *packedWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Unwrap returns the connection's writer, for deadlines.
func (w *packedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin decides whether to compress a body that starts with this many bytes.
func (w *packedWriter) begin(size int) {
	h := w.Header()
	if size < minCompressed || h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" || w.plain(h) {
		return
	}
	if w.coding = weightsOf(w.accepted).coding(); w.coding == "" {
		return
	}
	h.Set("Content-Encoding", w.coding)
	h.Del("Content-Length")
	w.packer, _ = packers[w.coding].Get().(packer)
	w.packer.Reset(w.ResponseWriter)
}

// close ends the compressed body. If it cannot be written, the client has gone.
func (w *packedWriter) close() {
	if w.packer == nil {
		return
	}
	_ = w.packer.Close()
	packers[w.coding].Put(w.packer)
}

// Static returns a handler that responds with the content, which never changes. It is
// compressed once, when a client first accepts that. The handler's caller sets the other headers.
func Static(content []byte) gin.HandlerFunc {
	packed := sync.OnceValue(func() []byte { return gzipped(content) })
	return func(c *gin.Context) {
		body := content
		if weightsOf(c.GetHeader("Accept-Encoding")).accepts(codingGzip) && packed() != nil {
			body = packed()
			c.Header("Content-Encoding", "gzip")
		}
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(body))
	}
}

// gzipped returns the content compressed, nil if that does not make it smaller.
func gzipped(content []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	if packed.Len() >= len(content) {
		return nil
	}
	return packed.Bytes()
}
