// Package mailtest is an SMTP server for tests, on a free port of 127.0.0.1.
//
// Inputs: connections from the test's process, or from another one that has the
// [Server.URL]. Outputs: the accepted messages, decoded, and a way to wait for them.
//
// The server is strict: it rejects a message that breaks a rule of MIME with a reply that
// names the rule. It also misbehaves on demand: at every [Step] it can reply
// something else, drop the connection or hang, once or until [Server.BehaveWell]:
//
//	server := mailtest.NewServer(t, mailtest.Options{})
//	server.Reject("ann@example.com", 550)
//	server.Once(mailtest.Accept, mailtest.Drop())
//	...
//	err := server.Wait(ctx, func() bool { return len(server.Messages()) == 2 })
//
// Its replies repeat addresses and user names, as real servers do, so that tests
// can check where they end up.
//
// It imports no other package of the product, and only tests import it.
package mailtest
