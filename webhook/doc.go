// Package webhook signs, sends and verifies the service's webhooks (api.md 6.4 to 6.7). It
// imports no other package of the product, so receivers can import it. It repeats a few
// limits of package models; a test of cmd/millwright compares them.
//
// A receiver needs one call. [VerifyRequest] reads a request's body and returns
// its [Event], or [Verify] checks headers and a raw body read elsewhere. Both
// check the Service-Signature header and return [ErrMissing], [ErrMalformed],
// [ErrMismatch] or [ErrStale]:
//
//	event, err := webhook.VerifyRequest(r, secret, time.Now())
//	if err != nil {
//		http.Error(w, "bad signature", http.StatusBadRequest)
//		return
//	}
//
// A sender creates a [Signer] per webhook address, from its secret or, during a
// rotation, its two secrets. [Signer.Header] returns the headers of a delivery,
// Service-* and Standard Webhooks, and [Client] posts it.
//
// Integrations choose the addresses, so the client trusts none. At every attempt it
// resolves the name, rejects IP addresses outside the public internet and the networks
// an operator allowed, connects to a checked IP address and checks it again on the
// socket: DNS rebinding does not help. [CheckURL] applies the same rules when an address
// is saved and explains a rejection in a sentence.
//
// The package's only state is open connections. It logs nothing and never puts a secret
// or an address's path and query into an error.
package webhook
