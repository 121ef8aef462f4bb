package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are the example lines in the help of commands, by the command's path.
var examples = map[string][]string{
	"millwright": {
		"millwright webhooks list",
		"millwright deliveries list --status failed",
		"millwright deliveries redeliver --address whk_… --since 36h",
	},
	"millwright api":       {"millwright api"},
	"millwright worker":    {"millwright worker"},
	"millwright migrate":   {"millwright migrate"},
	"millwright config":    {"millwright config"},
	"millwright version":   {"millwright version"},
	"millwright namespace": {"millwright namespace"},
	"millwright openapi":   {"millwright openapi --output openapi.json"},
	"millwright reseal":    {"millwright reseal"},
	"millwright import": {
		"millwright import acme.yaml --dry-run",
		"millwright import acme.yaml",
	},
	"millwright demo": {"millwright demo demo/week.yaml demo/service-company.yaml demo/campus.yaml"},
	"millwright listen": {
		"millwright listen",
		"millwright listen --secret-file secret --status 503",
		"millwright listen --record received",
	},
	"millwright replay": {"millwright replay received/*.http --to http://127.0.0.1:8000/webhooks"},

	"millwright health":            {"millwright health --stuck"},
	"millwright health api":        {"millwright health api"},
	"millwright health worker":     {"millwright health worker"},
	"millwright health workflows":  {"millwright health workflows"},
	"millwright restored":          {"millwright restored postgres"},
	"millwright restored postgres": {"millwright restored postgres"},
	"millwright restored temporal": {"millwright restored temporal"},

	"millwright organizations":      {"millwright organizations list"},
	"millwright organizations list": {"millwright organizations list", "millwright organizations list --json"},

	"millwright integrations": {"millwright integrations list --organization acme"},
	"millwright integrations list": {
		"millwright integrations list",
		"millwright integrations list --organization acme",
	},
	"millwright integrations create": {
		"millwright integrations create --organization acme --name ERP --scope work_orders:read,work_orders:write --as ann@example.com",
	},
	"millwright integrations rename":         {"millwright integrations rename idn_… --name 'ERP of the north'"},
	"millwright integrations owners":         {"millwright integrations owners idn_… --owner idn_…"},
	"millwright integrations scopes":         {"millwright integrations scopes idn_… --scope work_orders:read --scope people:read"},
	"millwright integrations renew-secret":   {"millwright integrations renew-secret idn_… --overlap 24h --as ann@example.com"},
	"millwright integrations end-old-secret": {"millwright integrations end-old-secret idn_… --as ann@example.com"},
	"millwright integrations turn-off":       {"millwright integrations turn-off idn_… --as ann@example.com"},
	"millwright integrations turn-on":        {"millwright integrations turn-on idn_… --as ann@example.com"},
	"millwright integrations delete":         {"millwright integrations delete idn_… --as ann@example.com"},
	"millwright integrations disable":        {"millwright integrations disable idn_…"},
	"millwright integrations enable":         {"millwright integrations enable idn_…"},

	"millwright webhooks": {"millwright webhooks list", "millwright webhooks test whk_…"},
	"millwright webhooks list": {
		"millwright webhooks list",
		"millwright webhooks list --integration idn_… --json",
	},
	"millwright webhooks show": {"millwright webhooks show whk_…"},
	"millwright webhooks create": {
		"millwright webhooks create --integration idn_… --url https://erp.example.com/webhooks --event work_order.created,work_order.completed",
	},
	"millwright webhooks change": {
		"millwright webhooks change whk_… --url https://erp.example.com/v2/webhooks",
		"millwright webhooks change whk_… --event work_order.created,issue.created",
	},
	"millwright webhooks enable": {
		"millwright webhooks enable whk_…",
		"millwright webhooks enable whk_… --since 36h",
	},
	"millwright webhooks disable":      {"millwright webhooks disable whk_… --reason 'The receiver moves on Monday.'"},
	"millwright webhooks renew-secret": {"millwright webhooks renew-secret whk_…"},
	"millwright webhooks delete":       {"millwright webhooks delete whk_…"},
	"millwright webhooks test":         {"millwright webhooks test whk_…"},

	"millwright deliveries": {"millwright deliveries list --status failed"},
	"millwright deliveries list": {
		"millwright deliveries list --status failed,held",
		"millwright deliveries list --address whk_… --limit 200 --json",
	},
	"millwright deliveries show": {"millwright deliveries show dlv_…"},
	"millwright deliveries redeliver": {
		"millwright deliveries redeliver dlv_…",
		"millwright deliveries redeliver --address whk_… --since 2026-03-01T08:00:00Z",
		"millwright deliveries redeliver --all-addresses --since 2h",
	},

	"millwright trigger": {
		"millwright trigger work_order.created --address whk_…",
		"millwright trigger issue.resolved --address whk_… --json",
	},

	"millwright work-orders": {"millwright work-orders list --organization acme --status sent_to_inspection"},
	"millwright work-orders list": {
		"millwright work-orders list --organization acme --status open,in_progress",
		"millwright work-orders list --as ann@example.com --assignee idn_… --json",
	},
	"millwright work-orders show": {
		"millwright work-orders show wo_…",
		"millwright work-orders show wo_… --as ann@example.com",
	},
	"millwright work-orders review": {
		"millwright work-orders review wo_… --approve --as cat@example.com",
		"millwright work-orders review wo_… --send-back --comment 'The belt is loose.' --as cat@example.com",
	},
	"millwright work-orders hold":   {"millwright work-orders hold wo_… --as ann@example.com"},
	"millwright work-orders resume": {"millwright work-orders resume wo_… --as ann@example.com"},

	"millwright issues": {"millwright issues list --organization acme --status open"},
	"millwright issues list": {
		"millwright issues list --organization acme --status open",
		"millwright issues list --as ann@example.com --external-id DESK-19",
	},
	"millwright issues show":    {"millwright issues show iss_…"},
	"millwright issues resolve": {"millwright issues resolve iss_… --as ann@example.com"},

	"millwright people": {"millwright people invite ann@example.com --organization acme --admin"},
	"millwright people list": {
		"millwright people list --organization acme",
		"millwright people list --organization acme --search field --json",
	},
	"millwright people invite": {
		"millwright people invite ann@example.com --organization acme --admin",
		"millwright people invite bob@example.com --organization acme --name 'Bob Stone' --definition def_…",
	},
	"millwright organizations require-openid": {"millwright organizations require-openid acme"},
	"millwright organizations lift-openid":    {"millwright organizations lift-openid acme"},
	"millwright people change-email": {
		"millwright people change-email bob@example.com bob.stone@example.com",
	},
	"millwright people set-password": {
		"millwright people set-password ann@example.com",
		"millwright people set-password ann@example.com --organization acme --generate",
	},
	"millwright people deactivate": {
		"millwright people deactivate bob@example.com",
		"millwright people deactivate bob@example.com --replace-with dan@example.com --as ann@example.com",
	},
	"millwright people activate": {"millwright people activate idn_…"},

	"millwright log": {"millwright log list --organization acme --since 24h"},
	"millwright log list": {
		"millwright log list --organization acme --since 24h",
		"millwright log list --organization acme --record wo_…",
		"millwright log list --organization acme --action integration",
		"millwright log list --as ann@example.com --limit 500 --json",
	},
	"millwright mail":         {"millwright mail list"},
	"millwright mail list":    {"millwright mail list", "millwright mail list --organization acme"},
	"millwright notices":      {"millwright notices list --as bob@example.com"},
	"millwright notices list": {"millwright notices list --as bob@example.com --read"},
}

// addExamples adds the examples to the help of the command and of those below it.
func addExamples(cmd *cobra.Command) {
	if lines := examples[cmd.CommandPath()]; len(lines) > 0 {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	for _, c := range cmd.Commands() {
		addExamples(c)
	}
}
