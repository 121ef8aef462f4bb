// Package mailtest is an SMTP server for tests, on a free port of 127.0.0.1.
//
// What flows in: connections, from the test's own process or from another one
// that was given [Server.URL]. What flows out: the messages the server accepted,
// read and decoded, and a way to wait for them.
//
// The server is strict: a message that breaks a rule of SMTP or MIME is refused
// with a reply that says which. And it misbehaves on demand. At every [Step] of
// a conversation it can answer something else, drop the connection or fall
// silent, once or until told otherwise:
//
//	server := mailtest.NewServer(t, mailtest.Options{})
//	server.Refuse("ann@example.com", 550)
//	server.Once(mailtest.Accept, mailtest.Drop())
//	...
//	messages, err := server.WaitForMessages(ctx, 2)
//
// Its replies repeat addresses and user names, as those of real servers do, so
// that a test can see whether they end up where they should not.
//
// It knows nothing of the product, and nothing that is not a test imports it.
package mailtest
