package conformance

import (
	"net/http"
	"strings"
	"testing"
)

var section7 = []rule{
	tokenFailure("401 invalid_client, unknown", "token request of an unknown client", "service/access.(*Access).authenticate", 401, "invalid_client", func(h *harness) string {
		return strings.Replace(h.credentials("erp", "").Encode(), "cli_erp", "cli_nobody_knows", 1)
	}),
	tokenFailure("401 invalid_client, secret", "or with a wrong secret", "service/access.(*Access).authenticate", 401, "invalid_client", func(h *harness) string {
		return strings.Replace(h.credentials("erp", "").Encode(), "secret-of-the-erp", "secret-of-the-ape", 1)
	}),
	unauthorized("off", "token request of an integration that is off", "service/access.(*Access).IssueToken",
		`UPDATE integrations SET enabled = false`, `UPDATE integrations SET enabled = true`),
	unauthorized("disabled", "or disabled by the service", "service/access.(*Access).IssueToken",
		`UPDATE integrations SET disabled_by_service = true`, `UPDATE integrations SET disabled_by_service = false`),
	{item: "400 unauthorized_client, plan", words: "or whose plan lacks the API", code: "service/access.(*Access).IssueToken", test: wantPlanWithAPI},
	unauthorized("suspended", "or whose organization is suspended", "service/access.(*Access).IssueToken",
		`UPDATE organizations SET suspended = true`, `UPDATE organizations SET suspended = false`),
	tokenFailure("400 invalid_scope", "token request for a scope that the integration does not have", "service/access.(*Access).IssueToken", 400, "invalid_scope", func(h *harness) string {
		return h.credentials("reader", "work_orders:read people:read").Encode()
	}),
	tokenFailure("400 unsupported_grant_type", "token request with another grant type", "api.checkGrant", 400, "unsupported_grant_type", func(h *harness) string {
		return strings.Replace(h.credentials("erp", "").Encode(), "client_credentials", "password", 1)
	}),
	{item: "401, expired", words: "a call with an expired token", code: "service/store.(*TokenKeys).Parse", alone: true, test: wantTokensExpire},
	{item: "401, invalidated", words: "a call with an invalidated token", code: "service/access.(*Access).admit", test: invalidations[1].test},
	{item: "404", words: "a record that does not exist or may not be read", code: "models.NotFound", test: func(_ *testing.T, h *harness) {
		roof := h.workOrder(object{"inventory_id": h.ID("roof")})
		for _, path := range []string{"/work-orders/" + roof, "/work-orders/wo_00000000000000000000000000", "/work-orders/x"} {
			h.As("reader", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
		}
		for _, path := range []string{"/issues/", "/people/", "/teams/", "/forms/", "/locations/", "/systems/", "/equipment/", "/sub-equipment/"} {
			h.get(path+"x").Want(http.StatusNotFound, "not_found")
		}
		h.patch("wo_00000000000000000000000000", object{"title": "x"}).Want(http.StatusNotFound, "not_found")
	}},
	{item: "409", words: "feedback with an external_id that is taken", code: "service/records.feedbackCreation.check", test: wantUniqueExternalIDs},
	{item: "422 rule_violation", words: "completing without a required answer, which is named", code: "service/records.requireAnswers", test: wantRequiredAnswers},
	{item: "403 read_only", words: "creating or changing in a read-only organization", code: "service/records.organizationState.requireWritable", test: wantReadOnly},
	{item: "429 rate_limited", words: "one call too many in a minute, with Retry-After", code: "service/access.Rate.Exceeded", alone: true, test: wantLimited},
}

// tokenFailure is a rule about a rejected token request. A correct one must succeed
// afterwards.
func tokenFailure(item, words, function string, status int, code string, form func(h *harness) string) rule {
	return rule{item: item, words: words, code: function, test: func(t *testing.T, h *harness) {
		response := h.Send(http.MethodPost, "/v1/oauth/token", form(h), "Content-Type", formType).Want(status, "")
		want(t, "the error", response.Text("error"), code)
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
	}}
}

// unauthorized is a rule about unauthorized_client. do causes it, undo ends it.
func unauthorized(what, words, code, do, undo string) rule {
	return rule{item: "400 unauthorized_client, " + what, words: words, code: code, test: func(t *testing.T, h *harness) {
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
		h.changeUntilEnd(t, do, undo)
		response := h.token(h.credentials("erp", "")).Want(http.StatusBadRequest, "")
		want(t, "the error", response.Text("error"), "unauthorized_client")
	}}
}
