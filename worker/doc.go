// Package worker connects workflows and activities to a Temporal cluster: task
// queues and their limits, registration, search attributes and schedules. It also
// has the Waker, with which a process that wrote to the database wakes the
// workflows concerned, and the metrics of the waker and of the backlog.
//
// In: a Temporal client and a service.Service. Out: commands to Temporal and
// metrics. Workers and wakers run until they are stopped and keep no state that
// matters, so any number may run: a lost wake is repeated by the sweep.
//
// The package may use workflows, activities, service and models; it contains no
// rule and no SQL.
package worker
