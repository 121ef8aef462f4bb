package records

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"millwright/models"
)

// Due is when work orders in process are due, by the days of a time zone.
type Due string

// The values of Due that restrict a search.
const (
	DueOverdue Due = "overdue"
	DueToday   Due = "today" // later today
	DueWeek    Due = "week"  // after today, until Sunday
	DueLater   Due = "later" // after this week, or without a date
)

// Dues are the values of Due, the earliest first.
var Dues = []Due{DueOverdue, DueToday, DueWeek, DueLater}

// dueRange is from a time until another; the zero time is no bound. Without a date, a work order
// is after all times.
type dueRange struct{ from, until time.Time }

// on returns the range of the value at a time.
func (d Due) on(now time.Time, zone *time.Location) dueRange {
	local := now.In(zone)
	day := func(n int) time.Time { return time.Date(local.Year(), local.Month(), local.Day()+n, 0, 0, 0, 0, zone) }
	nextMonday := day(7 - (int(local.Weekday())+6)%7)
	switch d {
	case DueOverdue:
		return dueRange{until: now}
	case DueToday:
		return dueRange{now, day(1)}
	case DueWeek:
		return dueRange{day(1), nextMonday}
	case DueLater:
		return dueRange{from: nextMonday}
	}
	return dueRange{}
}

// condition is true of w in the range; the arguments are names of times.
func (d dueRange) condition(from, until string) string {
	var all []string
	if !d.from.IsZero() {
		all = append(all, `coalesce(w.target_date, 'infinity') >= `+from)
	}
	if !d.until.IsZero() {
		all = append(all, `w.target_date < `+until)
	}
	return cmp.Or(strings.Join(all, " AND "), "true")
}

// keys are the bounds of due_key in the range, to the second.
func (d dueRange) keys() (low, high string) {
	low, high = "", lastKey
	if !d.from.IsZero() {
		low = dueBound(d.from)
	}
	if !d.until.IsZero() {
		high = dueBound(d.until.Add(time.Second - 1))
	}
	return low, high
}

func dueBound(at time.Time) string { return fmt.Sprintf("%012d", at.Unix()) }

// lastKey sorts after every key of a search's order.
const lastKey = "~"

// dueKey is the key of the order by due.
const dueKey = `due_key(w.target_date, w.priority, w.id)`

// dueKeyPrefix is the length of the part of due_key before the id.
const dueKeyPrefix = 13

// inProcess is the condition of the indexes of due_key.
const inProcess = `w.status NOT IN ('complete', 'cancelled')`

// backMark precedes the key of a page back in cursors: no key begins with it.
const backMark = "<"

// ascends reports whether the keys of a page ascend as it is read.
func (f *workOrderFinder) ascends() bool { return f.search.ByDue != f.back }

// order returns the comparison of the next key with the one before, and the direction.
func (f *workOrderFinder) order() (past, direction string) {
	if f.ascends() {
		return ">", "ASC"
	}
	return "<", "DESC"
}

// begin sets the arguments of where the page begins: of ids, or of ranges of due_key.
func (f *workOrderFinder) begin(ranges ...dueRange) {
	if !f.search.ByDue {
		f.Args["after"] = cmp.Or(f.from, map[bool]string{true: "", false: lastKey}[f.ascends()])
		return
	}
	var lows, highs []string
	for _, r := range ranges {
		low, high := r.keys()
		if f.back {
			high = min(high, f.from)
		} else {
			low = max(low, f.from)
		}
		lows, highs = append(lows, low), append(highs, high)
	}
	f.Args["lows"], f.Args["highs"] = lows, highs
}

// dates adds the times of the search's Due as arguments, and returns the condition.
func (f *workOrderFinder) dates() string {
	r := f.search.Due.on(f.now.Time, f.zone)
	from, until := "from"+f.section, "until"+f.section
	f.Args[from], f.Args[until] = models.TimeOf(r.from), models.TimeOf(r.until)
	return r.condition("@"+from+"::timestamptz", "@"+until+"::timestamptz")
}
