package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

const (
	peerPart = "peers"
	// peerPlaceholder is where a body has a string that is another each time.
	peerPlaceholder = "{id}"
)

// peerOptions configure reads and creations of another server, which runs already.
type peerOptions struct {
	name, read, create, createBody string
	headers                        []string
}

// addHeader adds a header to the calls.
func (o *peerOptions) addHeader(header string) error {
	name, _, ok := strings.Cut(header, ":")
	if !ok || name == "" || strings.ContainsAny(header, "\r\n") {
		return errors.New(`a header is "Name: value"`)
	}
	o.headers = append(o.headers, header)
	return nil
}

func (o *peerOptions) define(flags *flag.FlagSet) {
	flags.StringVar(&o.name, "peer-name", "peer", "the other server's name in the table")
	flags.StringVar(&o.read, "peer-read", "", "the URL of a record of another server; its reads are compared with reads of a work order")
	flags.StringVar(&o.create, "peer-create", "", "the URL where another server creates records by POST; they are compared with creations of work orders")
	flags.StringVar(&o.createBody, "peer-create-body", `{"title":"Replace filter {id}"}`, "the record to create, or @FILE with it; {id} becomes another string each time")
	flags.Func("peer-header", `a header of the other server's calls, "Name: value"; may be repeated`, o.addHeader)
}

// check reads the body and reports options that cannot work.
func (o *peerOptions) check(only string) error {
	if o.read+o.create == "" && slices.Contains(strings.Split(only, ","), peerPart) {
		return errors.New("-only peers needs -peer-read or -peer-create URL")
	}
	for name, text := range map[string]string{"-peer-read": o.read, "-peer-create": o.create} {
		target, err := url.Parse(text)
		if text != "" && (err != nil || target.Scheme != "http" || target.Host == "") {
			return fmt.Errorf("%s must be an http:// URL", name)
		}
	}
	if file, named := strings.CutPrefix(o.createBody, "@"); named {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("-peer-create-body: %w", err)
		}
		o.createBody = string(text)
	}
	return nil
}

// operation returns the address of the URL and a call of it.
func (o *peerOptions) operation(name, method, text, body string) (address string, op operation, err error) {
	target, err := url.Parse(text)
	if err != nil {
		return "", op, err
	}
	address = target.Host
	if target.Port() == "" {
		address = net.JoinHostPort(target.Hostname(), "80")
	}
	head := method + " " + target.RequestURI() + " HTTP/1.1\r\nHost: " + target.Host + "\r\n"
	if !slices.ContainsFunc(o.headers, func(h string) bool { return strings.HasPrefix(strings.ToLower(h), "content-type:") }) {
		head += "Content-Type: application/json\r\n"
	}
	for _, header := range o.headers {
		head += header + "\r\n"
	}
	return address, operation{name, func(_ *tenant, c *caller) error {
		content := strings.ReplaceAll(body, peerPlaceholder, rand.Text())
		c.request = fmt.Appendf(c.request[:0], "%sContent-Length: %d\r\n\r\n%s", head, len(content), content)
		status, err := c.send()
		if err == nil && status/100 != 2 {
			err = &statusError{method, target.Path, status, c.body.String()}
		}
		return err
	}}, nil
}

// benchPeer measures the rates of reads and creations of another server and of the product in
// turn.
func benchPeer(b *bench) {
	o := b.options.peer
	if o.read+o.create == "" {
		return
	}
	in := b.install(peerPart)
	subscription := changeSubscription(1)
	subscription.events = []string{"work_order.created"}
	in.startWith(subscription)
	if o.read != "" {
		in.comparePeer(readOne, http.MethodGet, o.read, "")
	}
	if o.create != "" {
		in.comparePeer(createOne, http.MethodPost, o.create, o.createBody)
	}
}

// comparePeer measures calls of the peer and of the product alternately, without a worker.
func (in *installation) comparePeer(op operation, method, target, body string) {
	in.begin(op.name + " of the peer")
	address, theirs, err := in.options.peer.operation(op.name, method, target, body)
	check(err)
	peer, length := &tenant{Address: address}, in.load/rounds
	for _, clients := range []int{1, callers, manyCallers} {
		var of, ours series
		for round := range rounds + 1 { // the first warms up
			there, here := in.flood(peer, clients, theirs, length), in.flood(in.erp, clients, op, length)
			if round > 0 {
				of, ours = append(of, there), append(ours, here)
			}
		}
		what := fmt.Sprintf("%s, %d callers", op.name, clients)
		name := what + " of " + in.options.peer.name
		in.addSeries(name, of)
		in.compareSeries(what, ours, of, name)
		ours.cpu(in.report, what)
	}
}
