package conformance

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var section7 = []rule{
	tokenFailure("401 invalid_client, unknown", "token request of an unknown client", 401, "invalid_client", func(w *world) string {
		return strings.Replace(w.credentials("erp", "").Encode(), "cli_erp", "cli_nobody_knows", 1)
	}),
	tokenFailure("401 invalid_client, secret", "or with a wrong secret", 401, "invalid_client", func(w *world) string {
		return strings.Replace(w.credentials("erp", "").Encode(), "secret-of-the-erp", "secret-of-the-ape", 1)
	}),
	unauthorized("off", "token request of an integration that is off",
		`UPDATE integrations SET enabled = false`, `UPDATE integrations SET enabled = true`),
	unauthorized("disabled", "or disabled by the service",
		`UPDATE integrations SET disabled_by_service = true`, `UPDATE integrations SET disabled_by_service = false`),
	unauthorized("plan", "or whose plan lacks the API", `UPDATE plans SET api = false`, `UPDATE plans SET api = true`),
	unauthorized("suspended", "or whose organization is suspended",
		`UPDATE organizations SET suspended = true`, `UPDATE organizations SET suspended = false`),
	tokenFailure("400 invalid_scope", "token request for a scope it does not have", 400, "invalid_scope", func(w *world) string {
		return w.credentials("reader", "work_orders:read people:read").Encode()
	}),
	tokenFailure("400 unsupported_grant_type", "token request of another grant", 400, "unsupported_grant_type", func(w *world) string {
		return strings.Replace(w.credentials("erp", "").Encode(), "client_credentials", "password", 1)
	}),
	{item: "401, expired", words: "a call with an expired token", alone: true, test: func(_ *testing.T, w *world) {
		w.get("/me").Want(http.StatusOK, "")
		w.Clock.Advance(time.Hour)
		w.get("/me").Want(http.StatusUnauthorized, "invalid_token")
	}},
	{item: "401, invalidated", words: "a call with a token that was ended", test: func(t *testing.T, w *world) {
		w.get("/me").Want(http.StatusOK, "")
		w.during(t, `UPDATE integrations SET enabled = false WHERE id = $1`, `UPDATE integrations SET enabled = true WHERE id = $1`, w.ID("erp"))
		answer := w.get("/me").Want(http.StatusUnauthorized, "invalid_token")
		want(t, "it is called invalid", strings.Contains(answer.Header.Get("WWW-Authenticate"), `error="invalid_token"`), true)
	}},
	{item: "404", words: "a record that is not there, or not to be read", test: func(_ *testing.T, w *world) {
		roof := w.workOrder(object{"inventory_id": w.ID("roof")})
		for _, path := range []string{"/work-orders/" + roof, "/work-orders/wo_00000000000000000000000000", "/work-orders/x"} {
			w.As("reader", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
		}
		for _, path := range []string{"/issues/", "/people/", "/teams/", "/forms/", "/locations/", "/systems/", "/equipment/", "/sub-equipment/"} {
			w.get(path+"x").Want(http.StatusNotFound, "not_found")
		}
		w.patch("wo_00000000000000000000000000", object{"title": "x"}).Want(http.StatusNotFound, "not_found")
	}},
	{item: "409", words: "feedback with a reference that is taken", test: func(_ *testing.T, w *world) {
		w.feedback(object{"external_id": "TAKEN-7"}).Want(http.StatusCreated, "")
		w.feedback(object{"external_id": "TAKEN-7"}).Want(http.StatusConflict, "external_id_taken")
	}},
	{item: "422 rule_violation", words: "completing with a required question open, which is named", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		refused := w.answer(id, true).Want(http.StatusUnprocessableEntity, "rule_violation")
		wantList(t, "the questions", texts(refused, "question_ids"), w.ids("q_state", "q_hours")...)
	}},
	{item: "403 read_only", words: "creating or changing in a read-only organization", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.readOnly(t)
		w.post("/work-orders", w.body(nil)).Want(http.StatusForbidden, "read_only")
		w.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "read_only")
		w.read(id)
	}},
	{item: "429 rate_limited", words: "one call too many in a minute, with Retry-After", alone: true, test: func(t *testing.T, w *world) {
		w.limit(t, 2)
		w.get("/me").Want(http.StatusOK, "")
		w.get("/me").Want(http.StatusOK, "")
		refused := w.get("/me").Want(http.StatusTooManyRequests, "rate_limited")
		want(t, "Retry-After", refused.Header.Get("Retry-After"), "30")
		w.Clock.Advance(30 * time.Second)
		w.get("/me").Want(http.StatusOK, "")
	}},
}

// tokenFailure is a row about the token request; the same form unspoilt is answered.
func tokenFailure(item, words string, status int, code string, form func(w *world) string) rule {
	return rule{item: item, words: words, test: func(t *testing.T, w *world) {
		answer := w.Send(http.MethodPost, "/v1/oauth/token", form(w), "Content-Type", formType).Want(status, "")
		want(t, "the error", answer.Text("error"), code)
		w.token(w.credentials("erp", "")).Want(http.StatusOK, "")
	}}
}

func unauthorized(what, words, do, undo string) rule {
	return rule{item: "400 unauthorized_client, " + what, words: words, test: func(t *testing.T, w *world) {
		w.token(w.credentials("erp", "")).Want(http.StatusOK, "")
		w.during(t, do, undo)
		answer := w.token(w.credentials("erp", "")).Want(http.StatusBadRequest, "")
		want(t, "the error", answer.Text("error"), "unauthorized_client")
	}}
}

// receiver is a webhook receiver on this machine.
func receiver(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}
