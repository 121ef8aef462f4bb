// Package servicetest gives each test its own service: a clone of a template database
// with two small organizations (fixture.yaml, service_company.yaml), a clock that only
// moves when the test advances it, and a Waker that records what it is told to wake.
//
// New returns a Fixture, which embeds the service: f.Records.WorkOrder. Things of the fixture are named by
// their keys in the files: f.ID("erp"), f.Actor("erp"). Exec and Value run SQL for what
// no service function does. NewInstance is a second process on the same database.
//
// DATABASE_URL names the server. Databases are cloned in about 20 ms and dropped when
// the test ends; the template's name changes with the migrations. Tests run in
// parallel, so nothing here depends on anything outside the test's database, except
// that pages of changes wait for all transactions of the cluster
// (WaitForOpenTransactions).
//
// Only tests import this package. It must not import anything above package service.
package servicetest
