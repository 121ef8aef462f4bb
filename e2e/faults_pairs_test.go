package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/workflows"
)

// secondAPI starts another api of the installation and returns where it listens.
func (s *stack) secondAPI() (address string, p *process) {
	s.t.Helper()
	address, _ = freePort(s.t)
	return address, s.startAPI(settings{"MILLWRIGHT_ADDR": address})
}

func TestFaultOneKeyAtTwoAPIs(t *testing.T) {
	t.Parallel()
	const keys, each = 20, 4
	r := newReceiver(t)
	s := newStack(t, nil, r)
	s.startWorker()
	s.startAPI(nil)
	other, _ := s.secondAPI()
	c := s.stormClients(1, 6, []string{s.settings["MILLWRIGHT_ADDR"]}, nil)[0]
	c.token()
	apis := []*integrator{c.integrator, c.at(other)}
	var writes []*write
	for range keys {
		w := c.creation()
		answers := make([]reply, each)
		var calling sync.WaitGroup
		for n := range answers {
			calling.Go(func() {
				var err error
				if answers[n], err = apis[n%2].call(w.method, w.path, w.marker, w.body); err != nil {
					t.Errorf("create: %v", err)
				}
			})
		}
		calling.Wait()
		first := 0
		for _, answer := range answers {
			if answer.header.Get("Idempotency-Replayed") != "true" {
				first++
			}
			if answer.status != http.StatusCreated || !bytes.Equal(answer.body, answers[0].body) {
				t.Errorf("one key is answered %d %s and %d %s", answers[0].status, answers[0].body, answer.status, answer.body)
			}
		}
		if first != 1 {
			t.Errorf("%d of %d calls with one key say that they were no replay", first, each)
		}
		w.status = answers[0].status
		writes = append(writes, w)
	}
	newAudit(s, c.integrator, []*receiver{r}).run(writes)
}

// holder returns which of the workers has the mailbox of the first receiver, -1 for none.
func (s *stack) holder(workers []*process) int {
	is, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), workflows.WebhookAddressID(s.org.webhookID(1)), "")
	if err != nil {
		return -1
	}
	for _, activity := range is.GetPendingActivities() {
		for n, w := range workers {
			if strings.HasPrefix(activity.GetLastWorkerIdentity(), fmt.Sprintf("%d@", w.cmd.Process.Pid)) {
				return n
			}
		}
	}
	return -1
}

func TestFaultOneOfTwoWorkersDies(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newStack(t, nil, r)
	workers := []*process{s.startWorker(), s.startWorker()}
	s.startAPI(nil)
	i := s.integrator()
	ids := i.createMany(150)
	eventually(t, deliveryLimit, "all arrive", func() bool { return r.missing(ids) == 0 })
	if n := r.duplicates(); n > 0 {
		t.Errorf("%d deliveries came twice, so both workers had the mailbox", n)
	}
	ids = append(ids, i.create("Before one dies"))
	holder := -1
	eventually(t, deliveryLimit, "a worker has the mailbox", func() bool {
		holder = s.holder(workers)
		return holder >= 0
	})
	workers[holder].kill()
	killed := time.Now()
	ids = append(ids, i.createMany(50)...)
	eventually(t, recoveryLimit, "the other has it", func() bool { return s.holder(workers) == 1-holder })
	found(t, "mailbox taken over", "%s after its worker was killed", time.Since(killed).Round(100*time.Millisecond))
	eventually(t, recoveryLimit, "all arrive", func() bool { return r.missing(ids) == 0 })
	s.awaitAllDelivered()
}
