package console

import (
	"slices"
	"strings"
	"testing"

	"millwright/service/pages"
)

// The log can be filtered by each topic, and each action that has words is about one.
func TestTheLogKnowsEveryTopic(t *testing.T) {
	for _, topic := range pages.LogTopics {
		if !slices.ContainsFunc(logGroups, func(o option) bool { return o.Value == topic }) {
			t.Errorf("the log has no filter for %s", topic)
		}
	}
	for action := range actionWords {
		if topic, _, _ := strings.Cut(action, "."); !slices.Contains(pages.LogTopics, topic) {
			t.Errorf("%s is about no topic", action)
		}
	}
	if len(logGroups) != len(pages.LogTopics)+1 {
		t.Errorf("the log has %d filters", len(logGroups))
	}
}
