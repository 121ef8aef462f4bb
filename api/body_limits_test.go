package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
)

// answering is the path of the answers of a new work order of the ERP.
func answering(t *testing.T, s *apitest.Server) string {
	t.Helper()
	made := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T", "form_id": s.ID("inspection"), "assignees": []string{s.ID("erp")}})
	return "/work-orders/" + made.Want(http.StatusCreated, "").Text("id") + "/answers"
}

// repeated returns text n times, separated by commas.
func repeated(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

// fields returns n fields of an object with different names.
func fields(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `"u%d":1,`, i)
	}
	return strings.TrimSuffix(text.String(), ",")
}

// The first pass rejects a body with more than twice the fields and items of the schema. Of
// the errors of a smaller one, 100 are listed.
func TestBodiesOfManyValues(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	answers := answering(t, s)
	assignees, cancel := strings.TrimSuffix(answers, "answers")+"assignees", strings.TrimSuffix(answers, "answers")+"cancel"
	for _, c := range []struct {
		name, path, body string
		status           int
		detail           string
	}{
		{"answers without members", answers, `{"answers":[` + repeated("{}", 340_000) + `]}`, 413, "more than 1000 items in a list"},
		{"twice as many answers", answers, `{"answers":[` + repeated("{}", 1_000) + `]}`, 422, "Only the first 100 errors are listed."},
		{"answers with unknown members", answers, `{"answers":[` + repeated(`{`+fields(17)+`}`, 100) + `]}`, 413, "more than 16 fields in an object"},
		{"a list of a million options", answers, `{"answers":[{"question_id":"q","value":[` + repeated("1", 500_000) + `]}]}`, 413, "more than 1000 items in a list"},
		{"many lists of options", answers, `{"answers":[` + repeated(`{"question_id":"q","value":[`+repeated("1", 400)+`]}`, 300) + `]}`, 413, "more than 103004 fields and items"},
		{"assignees that are numbers", assignees, `{"assignees":[` + repeated("1", 8_000) + `]}`, 413, "more than 200 items in a list"},
		{"twice as many assignees", assignees, `{"assignees":[` + repeated("1", 200) + `]}`, 422, "Only the first 100 errors are listed."},
		{"unknown members", "/work-orders", `{` + fields(10_000) + `}`, 413, "more than 18 fields in an object"},
		{"a few unknown members", "/work-orders", `{` + fields(18) + `}`, 422, ""},
		{"a list in the place of a reason", cancel, `{"reason":["a","b"]}`, 422, ""},
		{"wide nesting", answers, `{"answers":[` + repeated(`[[[[[]]]]]`, 90_000) + `]}`, 413, "more than 1000 items in a list"},
		{"deep nesting", answers, strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000), 413, "more than 8 levels"},
		{"a long name", "/work-orders", `{"` + strings.Repeat("n", 150_000) + `":1}`, 422, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			response := s.As("erp", http.MethodPost, c.path, c.body)
			if response.Status != c.status || !strings.Contains(response.Text("detail"), c.detail) {
				t.Errorf("the response is %d %s, want %d %q", response.Status, response.Text("detail"), c.status, c.detail)
			}
			if n := len(response.Body); n > 64<<10 {
				t.Errorf("a body of %d bytes gets a response of %d", len(c.body), n)
			}
			if listed, _ := response.Field("errors").([]any); len(listed) > models.MaxFieldErrors {
				t.Errorf("%d errors", len(listed))
			}
		})
	}
}

// What the schema allows fits: the longest strings in their longest form, and as many answers as
// a call may have.
func TestLargestBodiesAreRead(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	longest := func(n int) string { return `"` + strings.Repeat(`\ud83d\ude00`, n) + `"` }
	s.As("erp", http.MethodPost, "/work-orders", fmt.Sprintf(`{"inventory_id":%q,"title":%s,"description":%s,"external_id":%s,"assignees":[%s]}`,
		s.ID("hvac"), longest(200), longest(10_000), longest(200), repeated(`"`+s.ID("erp")+`"`, 100))).Want(http.StatusUnprocessableEntity, "validation_failed") // one is named twice
	s.As("erp", http.MethodPost, "/work-orders", fmt.Sprintf(`{"inventory_id":%q,"title":%s,"description":%s,"external_id":%s}`,
		s.ID("hvac"), longest(200), longest(10_000), longest(200))).Want(http.StatusCreated, "")
	options := repeated(fmt.Sprintf("%q", s.ID("q_state")), 60)
	response := s.As("erp", http.MethodPost, answering(t, s), `{"answers":[`+repeated(fmt.Sprintf(`{"question_id":%q,"value":[%s]}`, s.ID("q_note"), options), 480)+`]}`)
	if response.Status != http.StatusUnprocessableEntity { // the question is named twice
		t.Errorf("the response is %d %s", response.Status, response.Text("detail"))
	}
}

// Each organization has one large body parsed at a time; its small bodies and other
// organizations' bodies do not wait.
func TestLargeBodiesOfAnOrganizationTakeTurns(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	handler := api.New(s.Service, api.Options{PublicURL: servicetest.Issuer, CallTimeout: time.Second, Log: slog.New(slog.DiscardHandler)})
	path := answering(t, s)
	send := func(key, path string, size int) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1"+path, strings.NewReader(`{"title":"`+strings.Repeat("x", size)+`"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+s.Token(key))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	leave, err := s.Access.EnterParsing(t.Context(), s.Acme.OrganizationID)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, key string
		size      int
		want      int
	}{
		{"a large body", "erp", 100 << 10, http.StatusServiceUnavailable},
		{"a small body", "erp", 60 << 10, http.StatusUnprocessableEntity},
		{"a large body of another organization", "dispatch", 100 << 10, http.StatusUnprocessableEntity},
	} {
		want(t, c.what, send(c.key, path, c.size), c.want)
	}
	leave()
	want(t, "a large body alone", send("erp", path, 100<<10), http.StatusUnprocessableEntity)
}
