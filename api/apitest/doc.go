// Package apitest runs an API for tests and calls it over HTTP as a client does.
//
// New starts a server on a fixture of servicetest: its own database, with two
// small organizations and a clock that the test advances. As calls an operation
// with the token of one of the fixture's integrations; Send makes any other
// request. Both check the request and the response against the OpenAPI document,
// so every test of the API also tests the document.
//
// Document is that check by itself. Tests that are generated from the document
// get its operations from Document.Operations.
//
// Only tests may import this package. It uses no functions of the service itself;
// a test that needs one calls it on the embedded fixture.
package apitest
