// Package webhook signs, sends and verifies the service's webhooks (spec
// section 6). It imports nothing else of the product, so receivers can import
// it as it is.
//
// A receiver needs one call. [VerifyRequest] reads a request's body and returns
// its [Event], or [Verify] checks headers and a raw body read elsewhere. Both
// check the Service-Signature header and answer with [ErrMissing],
// [ErrMalformed], [ErrMismatch] or [ErrStale]:
//
//	event, err := webhook.VerifyRequest(r, secret, time.Now())
//	if err != nil {
//		http.Error(w, "bad signature", http.StatusBadRequest)
//		return
//	}
//
// The sender makes a [Signer] once per webhook address, from the address's one
// secret or, during a rotation, its two. [Signer.Header] gives the headers of
// one delivery in both families: Service-* and Standard Webhooks. [Client]
// then posts it.
//
// The client sends where strangers tell it to, so it trusts no address. A name
// is resolved, every answer is checked, and the connection goes to the checked
// IP itself, where the socket is checked once more before it connects. What is
// refused then, whatever DNS said before, is everything outside the public
// internet, unless an operator opened the network. [CheckURL] applies the same
// rules when an address is saved and explains a refusal in a sentence.
//
// The package keeps no state but open connections, logs nothing, and never puts
// a secret or an address's path and query into an error.
package webhook
