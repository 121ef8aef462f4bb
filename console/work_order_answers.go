package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// answersView is the form of a work order's questions.
type answersView struct {
	Form form
	// Name is the work order's number and title, Back its page, FormName the form's.
	Name, Back, FormName string
	// SentBack is why the work came back, nil unless it is to be done again.
	SentBack *sentBackView
	// Forbidden is the rule that forbids answers, or "" if absent.
	Forbidden string
	Questions []field
	// Asked are the ids of the questions: browsers leave choices without an answer out.
	Asked string
	// Complete is the label of the button that also completes the work.
	Complete string
}

var answersPage = newPage[answersView]("work_order_answers.html")

// renderAnswers shows the questions with the stored answers, or with a rejected form's.
func (c *Console) renderAnswers(r *request, status int, rejected *form) error {
	detail, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), 0)
	if err != nil {
		return err
	}
	questions := askedQuestions(detail)
	values := url.Values{}
	for _, q := range questions {
		values[q.ID] = shownAnswer(q)
	}
	view := answersView{
		Form: workOrderForm(detail, values), Name: workOrderName(detail.Record),
		Back: workOrderURL(detail.Record.ID), SentBack: r.sentBack(detail), Complete: "Save and complete…",
	}
	if why := detail.Forbidden[models.OperationAnswer]; why != nil {
		view.Forbidden = sentences(why)
	}
	if detail.Answers.Form != nil {
		view.FormName = detail.Answers.Form.Name
	}
	if len(detail.Record.Consultants) > 0 {
		view.Complete = "Save, complete and send to the consultants"
	}
	view.Form = view.Form.orRejected(rejected)
	view.Form.Labels = map[string]string{}
	for _, q := range questions {
		view.Form.Labels[q.ID] = q.Label
		view.Questions = append(view.Questions, questionField(q, view.Form))
	}
	view.Asked = strings.Join(stringsOf(questions, func(q models.AnsweredRecord) string { return q.ID }), " ")
	return answersPage.render(r, status, view)
}

// askedQuestions are the questions of the form without the retired ones.
func askedQuestions(detail records.WorkOrderDetail) []models.AnsweredRecord {
	return slices.DeleteFunc(slices.Clone(detail.Answers.Questions), func(q models.AnsweredRecord) bool { return slices.Contains(detail.Retired, q.ID) })
}

func questionField(q models.AnsweredRecord, f form) field {
	in := f.Text(q.ID, q.Label)
	if q.Required {
		in.Label += " (required to complete)"
	}
	var options []option
	for _, o := range q.Options {
		options = append(options, option{Value: o.ID, Label: o.Label})
	}
	switch q.Type {
	case models.QuestionSingleChoice:
		if !q.Required {
			options = append(options, option{Value: "", Label: "No answer"})
		}
		in = f.choose("radios", options, in)
		if !q.Required && in.Value == "" {
			in.Options[len(options)-1].Chosen = true
			if q.Value == nil {
				in.Now = ""
			}
		}
	case models.QuestionMultipleChoice:
		in = f.choose("boxes", options, in)
	case models.QuestionInteger:
		in.Hint, in.Mode = "A whole number.", "numeric"
	case models.QuestionDecimal:
		in.Hint, in.Mode = "A number, such as 12.50.", "decimal"
	case models.QuestionText:
		in.Type, in.Rows = "lines", 3
	}
	return in
}

// shownAnswer is the answer of a question as the values of its input. "" chooses No answer.
func shownAnswer(q models.AnsweredRecord) []string {
	switch value := q.Value.(type) {
	case nil:
		return []string{""}
	case []any:
		return stringsOf(value, func(one any) string { return fmt.Sprint(one) })
	default:
		return []string{fmt.Sprint(value)}
	}
}

// sameAnswers reports whether two answers are shown alike.
func sameAnswers(a, b []string) bool {
	given := func(values []string) []string {
		var trimmed []string
		for _, v := range values {
			if v = models.Trim(strings.ReplaceAll(v, "\r\n", "\n")); v != "" {
				trimmed = append(trimmed, v)
			}
		}
		return trimmed
	}
	return slices.Equal(given(a), given(b))
}

// answerWorkOrder saves the answers that differ from what the form showed, and completes the
// work if that button was pressed.
func (c *Console) answerWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id := r.Param("id")
	detail, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), id, 0)
	if err != nil {
		return err
	}
	if f.Has("again", "yes") {
		f.Kept = true
		return c.renderAnswers(r, http.StatusOK, &f)
	}
	answers, completion := givenAnswers(f, askedQuestions(detail)), records.SaveAnswers
	if f.Has("complete", "yes") {
		completion = records.CompleteWork
	}
	err = ambiguousNumbers(f, answers)
	if err == nil && completion == records.CompleteWork && len(detail.Record.Consultants) == 0 && !f.Has("confirmed", "yes") && allRequired(f, askedQuestions(detail)) {
		return r.confirmAnswers(detail, f)
	}
	var result store.WriteResult
	if err == nil {
		result, err = c.service.Records.AnswerWorkOrder(r.ctx(), r.actor(), f.key(r), id, answers, completion)
	}
	done := "answered"
	if completion == records.CompleteWork {
		done = completedAs(result)
	}
	return r.finish(f, atQuestions(err, answers), r.afterStep(c.renderAnswers, done))
}

// allRequired reports whether the form answers every required question: others are asked for
// before the person confirms the completion.
func allRequired(f form, questions []models.AnsweredRecord) bool {
	return !slices.ContainsFunc(questions, func(q models.AnsweredRecord) bool { return q.Required && f.Value(q.ID) == "" })
}

// confirmAnswers asks whether to complete the work order with the answers of the form, which
// nothing undoes.
func (r *request) confirmAnswers(detail records.WorkOrderDetail, f form) error {
	view := confirmedComplete(detail, f)
	view.Action, view.Button, view.Again = r.Request.URL.Path, "Save the answers and complete", "Not yet"
	view.Effects[1] = "Your answers are saved with it. Its workers and its creator are told."
	view.Hidden = append(f.entered(), namedValue{"confirmed", "yes"})
	return r.confirm(view)
}

// givenAnswers are the answers that the form changes.
func givenAnswers(f form, questions []models.AnsweredRecord) []records.GivenAnswer {
	asked := strings.Fields(f.Value("asked"))
	var answers []records.GivenAnswer
	for _, q := range questions {
		if slices.Contains(asked, q.ID) && !sameAnswers(f.Values[q.ID], shownAnswer(q)) {
			answers = append(answers, records.GivenAnswer{QuestionID: q.ID, Value: givenAnswer(f, q)})
		}
	}
	return answers
}

// givenAnswer is the answer to a question, nil if it was left empty.
func givenAnswer(f form, q models.AnsweredRecord) any {
	text := f.Value(q.ID)
	switch {
	case q.Type == models.QuestionMultipleChoice && len(f.Values[q.ID]) > 0:
		var options []any
		for _, id := range f.Values[q.ID] {
			options = append(options, id)
		}
		return options
	case text == "":
		return nil
	case q.Type == models.QuestionInteger, q.Type == models.QuestionDecimal:
		return json.Number(withPoint(text))
	}
	return text
}

// withPoint returns a number with its decimal comma as a point.
func withPoint(number string) string {
	if strings.Count(number, ",") == 1 && !strings.Contains(number, ".") {
		return strings.Replace(number, ",", ".", 1)
	}
	return number
}

// thousands is a number whose comma may separate thousands.
var thousands = regexp.MustCompile(`^([+-]?\d+),(\d{3})$`)

// ambiguousNumbers asks what is meant by numbers whose comma may be that of decimals or that of
// thousands. Errors: validation_failed.
func ambiguousNumbers(f form, answers []records.GivenAnswer) error {
	var fields []models.FieldError
	for i, answer := range answers {
		if _, number := answer.Value.(json.Number); !number {
			continue
		}
		if parts := thousands.FindStringSubmatch(f.Value(answer.QuestionID)); parts != nil {
			fields = append(fields, models.FieldError{
				Pointer: fmt.Sprintf("/answers/%d", i), Code: "value",
				Detail: fmt.Sprintf("Is %s meant as %s.%s, or does the comma separate thousands? Enter it without the comma.", parts[0], parts[1], parts[2]),
			})
		}
	}
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// atQuestions returns an error about answers with the questions' ids instead of their places.
func atQuestions(err error, answers []records.GivenAnswer) error {
	known, ok := errors.AsType[*models.Error](err)
	if !ok {
		return err
	}
	var fields []models.FieldError
	for _, id := range known.QuestionIDs {
		fields = append(fields, models.FieldError{Pointer: "/" + id, Code: "required", Detail: "Answer this question to complete the work order."})
	}
	for _, field := range known.Fields {
		place, _, _ := strings.Cut(strings.TrimPrefix(field.Pointer, "/answers/"), "/")
		if n, err := strconv.Atoi(place); err == nil && n < len(answers) {
			field.Pointer = "/" + answers[n].QuestionID
		}
		fields = append(fields, field)
	}
	if len(fields) == 0 {
		return err
	}
	return models.Invalid(fields...)
}
