// Package worker brings workflows and activities to a Temporal cluster: task
// queue, options, registration, search attributes, schedules. It also holds the
// Waker, by which a process that wrote something wakes the workflows concerned.
//
// What flows in: a Temporal client and a service. What flows out: nothing; a
// Worker and a Poker run until they are stopped. Neither holds state that
// matters: workers and pokers scale by count.
package worker
