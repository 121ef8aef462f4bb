package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"time"
)

// caller is a client of a server with one connection, which it makes again after it was broken. It
// writes its requests itself, to leave the CPUs to the service.
type caller struct {
	address string
	from    net.Addr
	conn    net.Conn
	reader  *bufio.Reader
	// bearer is the header with the token of calls of the API, or "".
	bearer  string
	request []byte
	body    bytes.Buffer
	// limit bounds a call.
	limit time.Duration
}

// newCaller returns a client of the tenant, which is connected unless the server refuses that.
func newCaller(t *tenant) *caller {
	c := &caller{address: t.Address, from: t.from, limit: 30 * time.Second}
	if t.Token != "" {
		c.bearer = "Authorization: Bearer " + t.Token + "\r\n"
	}
	_ = c.connect() // the first call tries again
	return c
}

func (c *caller) connect() (err error) {
	if c.conn == nil {
		c.conn, err = (&net.Dialer{LocalAddr: c.from, Timeout: c.limit}).DialContext(context.Background(), "tcp", c.address)
		c.reader = bufio.NewReaderSize(c.conn, 16<<10)
	}
	return err
}

// close ends the connection, if there is one.
func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// get makes a call of the API.
func (c *caller) get(path string) error {
	return c.send(http.MethodGet, "/v1"+path, c.bearer, "", http.StatusOK)
}

// write makes a call of the API with a new idempotency key.
func (c *caller) write(method, path, body string, want int) error {
	return c.send(method, "/v1"+path, c.bearer+"Content-Type: application/json\r\nIdempotency-Key: "+rand.Text()+"\r\n", body, want)
}

const formHeaders = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"

// token gets an access token of an integration of the bench.
func (c *caller) token(clientID string) error {
	form := "grant_type=client_credentials&client_id=" + clientID + "&client_secret=" + clientSecretOf(clientID)
	return c.send(http.MethodPost, "/v1/oauth/token", formHeaders, form, http.StatusOK)
}

// page opens a page of the console.
func (c *caller) page(path, session string) error {
	return c.send(http.MethodGet, "/console"+path, cookie(session), "", http.StatusOK)
}

// form sends a form to the console and accepts its redirect.
func (c *caller) form(path, session, form string) error {
	return c.send(http.MethodPost, "/console"+path, cookie(session)+formHeaders, form, http.StatusSeeOther)
}

// cookie is the header of a session, "" if there is no session.
func cookie(session string) string {
	if session == "" {
		return ""
	}
	return "Cookie: session=" + session + "\r\n"
}

// send sends a request and reads its response, whose body is valid until the next call, and which must
// have the wanted status; 0 is any that begins with 2. It accepts no compressed responses, so figures
// from before the API server compressed them stay comparable.
func (c *caller) send(method, path, headers, body string, want int) error {
	c.request = fmt.Appendf(c.request[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path, c.address, headers, len(body), body)
	status, err := c.exchange()
	if err != nil {
		c.close()
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status != want && (want != 0 || status/100 != 2) {
		return &statusError{method, path, status, c.body.String()}
	}
	return nil
}

func (c *caller) exchange() (status int, err error) {
	if err := c.connect(); err != nil {
		return 0, err
	}
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

// textAfter returns the JSON text that follows the first occurrence of before.
func textAfter(body []byte, before string) string {
	_, rest, _ := bytes.Cut(body, []byte(before))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}
