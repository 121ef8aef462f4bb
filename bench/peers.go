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
	in.startWith(creationsToo())
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
		return c.send(method, path, "Content-Type: application/json\r\n", strings.ReplaceAll(body, "{id}", rand.Text()), 0)
	}
}

// comparePeer measures calls of the peer and of the product alternately, without a worker.
func (in *installation) comparePeer(op operation, method, target, body string) {
	at := must(url.Parse(target))
	peer, theirs := &tenant{Address: at.Host}, operation{op.name, peerCall(method, at.RequestURI(), body)}
	length := in.load / rounds
	for _, clients := range []int{1, callers, manyCallers} {
		in.flood(peer, clients, theirs, length) // warms up
		in.flood(in.erp, clients, op, length)
		name := fmt.Sprintf("%s, %d callers", op.name, clients)
		in.alternate(name, name+" of the peer",
			func() measured { return in.flood(in.erp, clients, op, length) },
			func() measured { return in.flood(peer, clients, theirs, length) })
	}
}
