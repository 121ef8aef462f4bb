package service

import "sync"

// maxUnusedNumbers bounds how many numbers are remembered for an organization.
const maxUnusedNumbers = 64

// unusedNumbers are numbers of work orders that were taken, but whose creation was
// rejected or was the repetition of another: the next creations in this process use them,
// so that the numbers of an organization have no gaps to wonder about. Those of a process
// that ends are never used.
type unusedNumbers struct {
	mu             sync.Mutex
	byOrganization map[string][]int64
}

// take removes and returns a number of the organization, 0 if it has none.
func (u *unusedNumbers) take(organizationID string) (number int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	numbers := u.byOrganization[organizationID]
	if len(numbers) == 0 {
		return 0
	}
	number = numbers[0]
	if u.byOrganization[organizationID] = numbers[1:]; len(numbers) == 1 {
		delete(u.byOrganization, organizationID)
	}
	return number
}

// put adds a number, which nothing else may use, or 0 for none.
func (u *unusedNumbers) put(organizationID string, number int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if number == 0 || len(u.byOrganization[organizationID]) >= maxUnusedNumbers {
		return
	}
	if u.byOrganization == nil {
		u.byOrganization = map[string][]int64{}
	}
	u.byOrganization[organizationID] = append(u.byOrganization[organizationID], number)
}
