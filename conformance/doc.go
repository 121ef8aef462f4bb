// Package conformance tests the product against the specification. For each
// numbered rule, table row and list item of the specification there is one entry,
// with a short summary in our own words, the function that implements it and a test.
//
// The tests call the API over HTTP as a client does. Rules that are not the API's,
// as signatures, the retry schedule and turning off addresses, are tested on the
// package that implements them.
//
// Each entry is a subtest of TestSpecification:
//
//	go test ./conformance -run 'TestSpecification/section_4/write_rule_7:'
//
// A complete run in which all hold can write docs/conformance.md:
//
//	go test ./conformance -run TestSpecification -args -write ../docs/conformance.md
//
// TestPageIsFresh fails if the page and the entries differ, and
// TestImplementationsExist if an entry names a function that does not exist.
package conformance
