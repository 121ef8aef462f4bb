package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	peerPart = "peers"
	// peerPlaceholder is where a body has the event's id, which the peer has to deliver
	// in the body or in a header.
	peerPlaceholder = "{id}"
	// peerPrefix begins the ids, so that they are found wherever the peer puts them.
	peerPrefix = "millwrightbench"
)

// peerOptions configure publishing an event to another webhook system, which runs already and
// delivers to the bench's sink, and reads and creations of another server, which runs too.
type peerOptions struct {
	url, body, sink, name    string
	read, create, createBody string
	headers                  headerFlags
	addresses                int
}

// headerFlags are HTTP headers, one a flag.
type headerFlags []string

func (h *headerFlags) String() string { return strings.Join(*h, ", ") }

func (h *headerFlags) Set(header string) error {
	name, _, ok := strings.Cut(header, ":")
	if !ok || name == "" || strings.ContainsAny(header, "\r\n") {
		return errors.New(`a header is "Name: value"`)
	}
	*h = append(*h, header)
	return nil
}

func (o *peerOptions) define(flags *flag.FlagSet) {
	flags.StringVar(&o.url, "peer", "", "the URL where another webhook system takes events by POST; it delivers them to -peer-sink")
	flags.StringVar(&o.body, "peer-body", `{"id":"{id}"}`, "the event to publish, or @FILE with it; {id} becomes a string that the delivery must contain")
	flags.StringVar(&o.sink, "peer-sink", "127.0.0.1:9099", "where the bench receives the peer's deliveries")
	flags.StringVar(&o.name, "peer-name", "peer", "the peer's name in the table")
	flags.StringVar(&o.read, "peer-read", "", "the URL of a record of another server; its reads are compared with reads of a work order")
	flags.StringVar(&o.create, "peer-create", "", "the URL where another server creates records by POST; they are compared with creations of work orders")
	flags.StringVar(&o.createBody, "peer-create-body", `{"title":"Replace filter {id}"}`, "the record to create, or @FILE with it; {id} becomes another string each time")
	flags.IntVar(&o.addresses, "peer-addresses", 1, "to how many addresses at the sink, each with its own path, the peer delivers an event; 1 to 5")
	flags.Var(&o.headers, "peer-header", `a header of the publishing requests, "Name: value"; may be repeated`)
}

// check reads the bodies and reports options that cannot work.
func (o *peerOptions) check(only string) error {
	if o.url+o.read+o.create == "" {
		if slices.Contains(strings.Split(only, ","), peerPart) {
			return errors.New("-only peers needs -peer, -peer-read or -peer-create URL")
		}
		return nil
	}
	for name, text := range map[string]string{"-peer": o.url, "-peer-read": o.read, "-peer-create": o.create} {
		target, err := url.Parse(text)
		if text != "" && (err != nil || target.Scheme != "http" || target.Host == "") {
			return fmt.Errorf("%s must be an http:// URL", name)
		}
	}
	for name, body := range map[string]*string{"-peer-body": &o.body, "-peer-create-body": &o.createBody} {
		if file, named := strings.CutPrefix(*body, "@"); named {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*body = string(text)
		}
	}
	if o.url != "" && !strings.Contains(o.body, peerPlaceholder) {
		return fmt.Errorf("-peer-body must contain %s", peerPlaceholder)
	}
	if o.addresses < 1 || o.addresses > manyAddresses {
		return fmt.Errorf("-peer-addresses must be 1 to %d", manyAddresses)
	}
	return nil
}

// peerTarget is where calls of a peer go.
type peerTarget struct {
	method, path, address string
	// head is the request before its length and body.
	head string
}

// target returns where the calls of the URL go.
func (o *peerOptions) target(method, text string) (peerTarget, error) {
	target, err := url.Parse(text)
	if err != nil {
		return peerTarget{}, err
	}
	address := target.Host
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
	return peerTarget{method, target.Path, address, head}, nil
}

// call makes one call, in whose body the id stands for the placeholder.
func (t peerTarget) call(c *caller, body, id string) error {
	body = strings.ReplaceAll(body, peerPlaceholder, id)
	c.request = fmt.Appendf(c.request[:0], "%sContent-Length: %d\r\n\r\n%s", t.head, len(body), body)
	status, err := c.send()
	if err == nil && status/100 != 2 {
		err = &statusError{t.method, t.path, status, c.body.String()}
	}
	return err
}

// identifyPeerDelivery identifies a delivery by the id that peerOptions.body gave to
// its event, in the body or in a header.
func identifyPeerDelivery(request *http.Request, body []byte) (string, changeKey) {
	id := peerID(body)
	for _, values := range request.Header {
		id = cmp.Or(id, peerID([]byte(strings.Join(values, " "))))
	}
	return request.URL.Path + " " + id, changeKey{workOrder: id}
}

var peerIDs = regexp.MustCompile(peerPrefix + `[0-9A-Za-z]*`)

// peerID returns the first id of an event in the text, "" if absent.
func peerID(text []byte) string { return string(peerIDs.Find(text)) }

// publisher returns what publishes to the peer and receives its deliveries.
func (o *peerOptions) publisher(ctx context.Context, sink *receiver, usage func() usage) (publisher, error) {
	target, err := o.target(http.MethodPost, o.url)
	if err != nil {
		return publisher{}, err
	}
	publish := func(c *caller) (answeredChange, error) {
		a := answeredChange{changeKey: changeKey{workOrder: peerPrefix + rand.Text()}, sent: time.Now()}
		err := target.call(c, o.body, a.workOrder)
		a.respondedAt = time.Now()
		return a, err
	}
	return publisher{&tenant{Address: target.address}, ctx, sink, o.addresses, publish, usage}, nil
}

// benchPeer measures another system and the product in turn. Of events to receivers: the rate, the
// latency when idle, and the latency of both at half of the slower one's rate. Of reads and
// creations: the rate.
func benchPeer(b *bench) {
	o := b.options.peer
	if o.url+o.read+o.create == "" {
		return
	}
	in := b.install(peerPart)
	if o.url == "" {
		subscription := changeSubscription(1)
		subscription.events = []string{"work_order.created"}
		in.subscribe(subscription)
		in.startAPI()
		check(in.erp.createWorkOrders(in.ctx, benchWorkOrders))
	} else {
		sink := must(listenForDeliveries(in.ctx, o.sink, identifyPeerDelivery))
		defer sink.close()
		in.startWith(changeSubscription(o.addresses), benchWorkOrders)
		in.startWorker(nil)
		in.awaitWorkflowsIdle()
		peer := must(o.publisher(in.ctx, sink, in.usage))
		comparePublishers(b, [2]contender{{o.name, peer}, {"changes", in.changes(o.addresses)}}, in.pause)
		in.stopWorker()
	}
	if o.read != "" {
		in.comparePeer(readOne, must(o.target(http.MethodGet, o.read)), "")
	}
	if o.create != "" {
		in.comparePeer(createOne, must(o.target(http.MethodPost, o.create)), o.createBody)
	}
}

// comparePeer measures calls of the peer and of the product alternately, without a worker.
func (in *installation) comparePeer(op operation, target peerTarget, body string) {
	in.begin(op.name + " of the peer")
	peer, theirs := &tenant{Address: target.address}, operation{op.name, func(_ *tenant, c *caller) error {
		return target.call(c, body, peerPrefix+rand.Text())
	}}
	length := in.load / rounds
	for _, clients := range []int{callers, manyCallers} {
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

// contender is one side of the comparison. The second is compared with the first.
type contender struct {
	name string
	publisher
}

// String returns the side's name in the table.
func (c contender) String() string {
	return fmt.Sprintf("%s, %d of its addresses", c.name, c.addresses)
}

// comparePublishers measures both sides alternately.
func comparePublishers(b *bench, sides [2]contender, pause func()) {
	var through [2][]float64
	var events [2]int
	var used [2]usage
	for round := range rounds + 1 { // the first warms up
		for n, side := range sides {
			b.begin(fmt.Sprintf("events of %s", side.name))
			if f := side.flood(b.load / rounds); round > 0 {
				through[n] = append(through[n], f.through())
				events[n] += f.changes
				used[n] = used[n].plus(f.used)
			}
		}
	}
	const rate = ": from first call to last delivery"
	b.add(sides[0].String()+rate, median(through[0]), "/s")
	used[0].report(b.report, sides[0].String(), events[0])
	b.compareRounds(sides[1].String()+rate, through[1], through[0], "/s", sides[0].String()+rate)
	used[1].report(b.report, sides[1].String(), events[1])
	half := min(median(through[0]), median(through[1])) / 2
	for _, side := range sides {
		b.begin(fmt.Sprintf("latency of %s", side.name))
		side.oneByOne(max(20, int(20*b.load.Seconds())), pause).report(b.report, side.String()+": idle")
		side.paced(half, b.load).report(b.report, fmt.Sprintf("%s: at %.0f events/s", side, half))
	}
}
