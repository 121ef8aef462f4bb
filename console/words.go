package console

import (
	"fmt"
	"html/template"
	"strings"
)

// doneBefore is for a form that was sent before.
const doneBefore = "before"

// doneTexts say what a write did, on the page after it, by the parameter done.
var doneTexts = map[string]string{
	doneBefore:   "This was done before. It was not done again.",
	"saved":      "Saved.",
	"signed-out": "You are signed out.",
}

// actionWords say what someone did, by the actions of Log Records: "NAME …".
var actionWords = map[string]string{
	"integration.created":             "created the integration",
	"integration.renamed":             "renamed the integration",
	"integration.scopes_changed":      "changed the integration's scopes",
	"integration.secret_renewed":      "renewed the integration's secret",
	"integration.turned_off":          "turned the integration off",
	"integration.turned_on":           "turned the integration on",
	"integration.deleted":             "deleted the integration",
	"integration.disabled_by_service": "disabled the integration for the service",
	"integration.enabled_by_service":  "enabled the integration for the service",
	"webhook.created":                 "added the webhook address",
	"webhook.changed":                 "changed the webhook address",
	"webhook.deleted":                 "deleted the webhook address",
	"webhook.secret_renewed":          "renewed the webhook address's signing secret",
	"webhook.turned_off":              "turned the webhook address off",
	"webhook.turned_on":               "turned the webhook address on",
	"delivery.redelivered":            "redelivered",
	"delivery.stopped":                "stopped a delivery",
}

// words returns an action of a Log Record in words.
func words(action string) string {
	if text, ok := actionWords[action]; ok {
		return text
	}
	return strings.NewReplacer(".", " ", "_", " ").Replace(action)
}

// plural returns the number with the word for one or for several.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// icon returns an icon of the layout's sprite. State is colour and icon and word, so icons
// are hidden from screen readers.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" aria-hidden="true" focusable="false"><use href="#icon-` + template.HTMLEscapeString(name) + `"></use></svg>`) //nolint:gosec // escaped
}
