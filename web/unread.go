package web

import "net/http"

// readAnyway is the size of bodies that are read although the request was rejected, to keep the
// connection.
const readAnyway = 16 << 10

// CloseUnread has the connection closed after the response to a request that is rejected before its
// body was read. net/http would read up to 256 KiB of it first, which costs more than the rejection.
func CloseUnread(header http.Header, r *http.Request) {
	if r.ContentLength < 0 || r.ContentLength > readAnyway {
		header.Set("Connection", "close")
	}
}
