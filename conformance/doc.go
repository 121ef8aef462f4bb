// Package conformance holds the product against the specification, section by
// section: every numbered rule, row of a table and item of a list there is one
// entry here, with a few words of our own and a short test that can fail. The
// tests call the API over HTTP as a client does; where a rule is not the API's
// (signatures, the retry schedule, addresses that are turned off) they call the
// package that keeps it.
//
// Each entry is a subtest of TestSpecification:
//
//	go test ./conformance -run 'TestSpecification/section_4/write_rule_7:'
//
// A whole run writes docs/conformance.md with the verdicts it came to:
//
//	go test ./conformance -run TestSpecification -args -write ../docs/conformance.md
//
// An entry whose subject is not built yet has no test and says what will bring
// it. TestPageIsFresh fails when the page and the entries differ.
package conformance
