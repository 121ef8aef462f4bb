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

// Imports make actions of an entity and a field; the console puts them into words by rule.
func TestActionsWithoutWordsAreReadable(t *testing.T) {
	for action, want := range map[string]string{
		"person.created": "created the person", "webhook.changed": "changed the webhook address", "organization.plan_api_changed": "changed the organization's plan api",
		"node.external_id_changed": "changed the place's external id", "integration.owners_changed": "changed the integration's owners", "some.thing_else": "some thing else",
	} {
		if got := words(action); got != want {
			t.Errorf("%s is %q, want %q", action, got, want)
		}
	}
}
