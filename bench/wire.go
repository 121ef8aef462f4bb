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
	"os"
	"time"
)

// caller is a client of the API, or of the baselines' server, with one connection. It
// writes its requests itself, to leave the CPUs to the service.
type caller struct {
	conn    net.Conn
	reader  *bufio.Reader
	host    string
	head    string
	request []byte
	body    bytes.Buffer
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
	c.host = address
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

// form sends a form to the console, with a session cookie unless it is "", and accepts its redirect.
func (c *caller) form(path, session, form string) error {
	cookie := ""
	if session != "" {
		cookie = "Cookie: session=" + session + "\r\n"
	}
	c.request = fmt.Appendf(c.request[:0], "POST /console%s HTTP/1.1\r\n%s%sSec-Fetch-Site: same-origin\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", path, c.head, cookie, len(form), form)
	_, err := c.exchange(http.MethodPost, path, http.StatusSeeOther)
	return err
}

// token gets an access token of an integration of the bench.
func (c *caller) token(clientID string) error {
	form := "grant_type=client_credentials&client_id=" + clientID + "&client_secret=" + clientSecretOf(clientID)
	c.request = fmt.Appendf(c.request[:0], "POST /v1/oauth/token HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		c.host, len(form), form)
	_, err := c.exchange(http.MethodPost, "/oauth/token", http.StatusOK)
	return err
}

// sendSlowly sends a form of which a byte goes out at each pause, until the server answers or
// hangs up.
func (c *caller) sendSlowly(path, session string, size int, pause time.Duration) error {
	head := fmt.Sprintf("POST /console%s HTTP/1.1\r\nHost: %s\r\nCookie: session=%s\r\nSec-Fetch-Site: same-origin\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", path, c.host, session, size)
	if _, err := io.WriteString(c.conn, head); err != nil {
		return err
	}
	for range size {
		if _, err := c.conn.Write([]byte{'x'}); err != nil {
			return err
		}
		if err := c.conn.SetReadDeadline(time.Now().Add(pause)); err != nil {
			return err
		}
		if _, err := c.conn.Read(make([]byte, 4096)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}

func (c *caller) exchange(method, path string, want int) ([]byte, error) {
	status, err := c.send()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status != want {
		return nil, &statusError{method, path, status, c.body.String()}
	}
	return c.body.Bytes(), nil
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
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	c.body.Reset()
	_, err = c.body.ReadFrom(response.Body)
	return response.StatusCode, err
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
