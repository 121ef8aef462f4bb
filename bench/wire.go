package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// caller is a client of the API, or of the baselines' server, with one connection. It
// implements only the HTTP it needs, to leave the CPUs to the service.
type caller struct {
	conn    net.Conn
	reader  *bufio.Reader
	head    string
	request []byte
	body    []byte
	// limit bounds a call.
	limit time.Duration
}

func dial(ctx context.Context, address, token string) (*caller, error) {
	return dialFrom(ctx, nil, address, token)
}

// dialFrom connects from a local address, nil for any.
func dialFrom(ctx context.Context, from net.Addr, address, token string) (*caller, error) {
	conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	const limit = 30 * time.Second
	c := &caller{conn: conn, reader: newReader(conn), limit: limit}
	c.use(address, token)
	return c, nil
}

// close ends the connection, if there is one.
func (c *caller) close() {
	if c != nil {
		_ = c.conn.Close()
	}
}

func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReaderSize(conn, 16<<10) }

// use sets the token of the following calls, "" to send none.
func (c *caller) use(address, token string) {
	c.head = "Host: " + address + "\r\n"
	if token != "" {
		c.head += "Authorization: Bearer " + token + "\r\n"
	}
}

// get makes a call and returns the body of its 200, valid until the next call. It accepts
// no compressed responses, so figures from before the API server compressed them stay comparable.
func (c *caller) get(path string) ([]byte, error) {
	c.request = fmt.Appendf(c.request[:0], "GET /v1%s HTTP/1.1\r\n%s\r\n", path, c.head)
	return c.exchange(http.MethodGet, path, http.StatusOK)
}

// write makes a call with the idempotency key and returns the response's body, valid
// until the next call.
func (c *caller) write(method, path, key, body string, want int) ([]byte, error) {
	c.request = fmt.Appendf(c.request[:0], "%s /v1%s HTTP/1.1\r\n%sContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, c.head, key, len(body), body)
	return c.exchange(method, path, want)
}

// page opens a page of the console with a session cookie.
func (c *caller) page(path, session string) ([]byte, error) {
	c.request = fmt.Appendf(c.request[:0], "GET /console%s HTTP/1.1\r\n%sCookie: session=%s\r\n\r\n", path, c.head, session)
	return c.exchange(http.MethodGet, path, http.StatusOK)
}

func (c *caller) exchange(method, path string, want int) ([]byte, error) {
	status, err := c.send()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status != want {
		return nil, &statusError{method, path, status, string(c.body)}
	}
	return c.body, nil
}

// send sends the request and reads its response, whose body is valid until the next
// call.
func (c *caller) send() (status int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, err
	}
	return c.readResponse()
}

// statusError is a response with another status than the call expects.
type statusError struct {
	method, path string
	status       int
	body         string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s returned %d: %s", e.method, e.path, e.status, e.body)
}

// readResponse reads one response, whose body has a length, is chunked, or is empty.
func (c *caller) readResponse() (status int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(line)
	if len(fields) < 2 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, fmt.Errorf("a response starts with %q", line)
	}
	if status, err = strconv.Atoi(string(fields[1])); err != nil {
		return 0, err
	}
	length, chunked := 0, false
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
	if chunked {
		return status, c.readChunks()
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.reader, c.body)
	return status, err
}

func (c *caller) readChunks() (err error) {
	if c.body, err = io.ReadAll(httputil.NewChunkedReader(c.reader)); err != nil {
		return err
	}
	// An empty line follows the chunks; we expect no trailers.
	end, err := c.reader.ReadSlice('\n')
	if err == nil && len(bytes.TrimRight(end, "\r\n")) > 0 {
		err = errors.New("a response has trailers")
	}
	return err
}
