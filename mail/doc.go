// Package mail sends an e-mail to one person through the operator's SMTP server, with
// github.com/wneessen/go-mail.
//
// Inputs: the server's URL and the sender for a [Client], then one [Message] per call,
// with its content and its ID. Output: nil once the server has accepted the message,
// otherwise an [*Error], which reports whether sending it again can help.
//
// A message may be sent twice: if the connection ends before the server's reply, the
// client cannot know whether the message was accepted. The caller sends it again with
// the same ID, which becomes the Message-ID, so that mail systems recognize it.
//
// Names and subjects come from users. They cannot add lines to a header. Errors contain
// no text of the server, since servers repeat addresses. Credentials are sent only over
// verified TLS or to this machine.
//
// The package imports no other package of the product. It keeps no connection and no
// state, logs nothing and never retries.
package mail
