// Package mail sends one e-mail to one person through the operator's SMTP
// server, by github.com/wneessen/go-mail.
//
// What flows in: the server's URL and the sender when a [Client] is made, then
// one [Message] a call, its texts written and its ID chosen by the caller. What
// flows out: nil when the server accepted the message, otherwise an [*Error],
// which says whether sending again may help.
//
// A message may be sent twice: when the connection ends between the server's
// acceptance and its answer, nobody here can know of the acceptance. The caller
// sends again under the same ID, which becomes the Message-ID, and mail systems
// recognise the second as the first.
//
// Names and subjects come from strangers. They can put no line of their own
// into a header, and nothing a server says in words comes back in an error,
// since servers repeat addresses. Credentials go through a verified TLS
// connection or to this very machine.
//
// The package knows nothing of the product: not who is written to, nor why, nor
// when to try again. It keeps no connection and no state, and logs nothing.
package mail
