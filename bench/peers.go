package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// benchPeer measures the rates of reads and creations of another server, which runs already, and of
// the product in turn.
func benchPeer(b *bench) {
	o := b.options
	if o.peerRead+o.peerCreate == "" {
		fmt.Println("peers: there is neither -peer-read nor -peer-create")
		return
	}
	in := b.install("peers")
	defer in.close()
	subscription := changeSubscription(1)
	subscription.Events = "work_order.created"
	in.startWith(subscription)
	if o.peerRead != "" {
		in.comparePeer(readOne, http.MethodGet, o.peerRead, "")
	}
	if o.peerCreate != "" {
		in.comparePeer(createOne, http.MethodPost, o.peerCreate, o.peerCreateBody)
	}
}

// peerCall returns a call of another server: {id} in the body becomes another string each time.
func peerCall(method, path, body string) func(*tenant, *caller) error {
	return func(_ *tenant, c *caller) error {
		_, err := c.send(method, path, "Content-Type: application/json\r\n", strings.ReplaceAll(body, "{id}", rand.Text()), 0)
		return err
	}
}

// comparePeer measures calls of the peer and of the product alternately, without a worker.
func (in *installation) comparePeer(op operation, method, target, body string) {
	at := must(url.Parse(target))
	theirs := operation{op.name, peerCall(method, at.RequestURI(), body)}
	peer, length := &tenant{Address: at.Host}, in.load/rounds
	for _, clients := range []int{1, callers, manyCallers} {
		var of, ours series
		for round := range rounds + 1 { // the first warms up
			there, here := in.flood(peer, clients, theirs, length), in.flood(in.erp, clients, op, length)
			if round > 0 {
				of, ours = append(of, there), append(ours, here)
			}
		}
		name := fmt.Sprintf("%s, %d callers", op.name, clients)
		in.addSeries(name+" of the peer", of)
		in.compareSeries(name, ours, of, name+" of the peer")
		in.addCPU(name, ours...)
	}
}
