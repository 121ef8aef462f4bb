package store

import (
	"time"

	"millwright/models"
)

// ChartTimes are the times at which a chart's steps begin, in the span that ends with the
// current step, oldest first.
func (s *Store) ChartTimes(span, step time.Duration) []models.Time {
	now := s.Now()
	var times []models.Time
	for at := now.UTC().Truncate(step).Add(step - span); !at.After(now); at = at.Add(step) {
		times = append(times, models.TimeOf(at))
	}
	return times
}
