package records

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// GivenAnswer is an answer to a question. A nil value clears it. Numbers are
// json.Number, so that decimals keep their digits.
type GivenAnswer struct {
	QuestionID string
	Value      any
}

// formQuestion is a question of a work order's form with its stored answer.
type formQuestion struct {
	ID string
	models.AnswerRules
	Retired bool
	Value   []byte // JSON, nil if not answered
}

const formQuestionsQuery = `
	SELECT q.id, q.type, q.required AND NOT q.retired AS required, q.retired, convert_to(a.value::text, 'UTF8') AS value,
		ARRAY(SELECT o.id FROM question_options o WHERE o.question_id = q.id) AS options
	FROM work_orders w
	JOIN questions q ON q.form_id = w.form_id
	LEFT JOIN answers a ON a.work_order_id = w.id AND a.question_id = q.id
	WHERE w.id = @id ORDER BY q.position`

// Completion is true if saving answers also completes the work.
type Completion bool

// The values of Completion.
const (
	SaveAnswers  Completion = false
	CompleteWork Completion = true
)

// AnswerWorkOrder saves answers and, for CompleteWork, completes the work order
// or sends it to its consultants (api.md 4.7). Other questions keep
// their answers. A read-only organization allows it. Errors: rule_violation
// (not_assigned_as_worker, own_work, status, required_questions), validation_failed and
// changeWorkOrder's.
func (s *Records) AnswerWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, answers []GivenAnswer, completion Completion) (store.WriteResult, error) {
	operation := models.OperationAnswer
	if completion == CompleteWork {
		operation = models.OperationComplete
	}
	var questions []formQuestion
	return s.changeWorkOrder(ctx, actor, key, id, operation, func(reading *pgx.Batch) {
		store.QueueAll(reading, &questions, formQuestionsQuery, pgx.NamedArgs{"id": id})
	}, func(_ context.Context, c *workOrderChange) error {
		if err := c.apply(); err != nil {
			return err
		}
		if err := c.saveAnswers(questions, answers); err != nil {
			return err
		}
		if completion == CompleteWork {
			c.row.CompletedBy = &c.Actor.IdentityID
			if err := requireAnswers(questions); err != nil {
				return err
			}
			c.Action = string(c.Events[len(c.Events)-1].Type)
			if len(c.state.Assigned.Consultants) == 0 {
				c.addNotice(models.NoticeCompleted)
			} else {
				c.notify(models.NoticeReviewWanted, c.state.Assigned.Consultants...)
				c.notify(models.NoticeInReview, c.state.CreatedBy)
			}
			return nil
		}
		c.Action = "work_order.answered"
		if c.row.Status != c.state.Status {
			c.addNotice(models.NoticeStarted)
		}
		return nil
	})
}

// saveAnswers checks the answers, queues those that change something, and sets
// the questions to the new values. Errors: validation_failed.
func (c *workOrderChange) saveAnswers(questions []formQuestion, answers []GivenAnswer) error {
	var fields []models.FieldError
	seen := map[string]bool{}
	for i, answer := range answers {
		pointer := fmt.Sprintf("/answers/%d", i)
		n := slices.IndexFunc(questions, func(q formQuestion) bool { return q.ID == answer.QuestionID })
		switch {
		case n < 0:
			fields = append(fields, store.UnknownField(pointer+"/question_id", "question in the work order's form"))
			continue
		case seen[answer.QuestionID]:
			fields = append(fields, models.FieldError{Pointer: pointer + "/question_id", Code: "duplicate", Detail: "This question is answered twice."})
			continue
		case questions[n].Retired:
			fields = append(fields, models.FieldError{Pointer: pointer + "/question_id", Code: "retired", Detail: "This question is retired: it is asked no longer."})
			continue
		}
		seen[answer.QuestionID] = true
		q := &questions[n]
		value, problem := answer.Value, ""
		if value != nil {
			value, problem = q.Normalize(value)
		}
		if problem != "" {
			fields = append(fields, models.FieldError{Pointer: pointer + "/value", Code: "value", Detail: problem})
			continue
		}
		if err := c.saveAnswer(q, value); err != nil {
			return err
		}
	}
	return store.Invalid(fields)
}

func (c *workOrderChange) saveAnswer(q *formQuestion, value any) error {
	old := json.RawMessage(q.Value)
	if value == nil {
		if old == nil {
			return nil
		}
		q.Value = nil
		c.Changes["answers."+q.ID] = effects.FromTo(old, nil)
		return c.Delete(&models.Answer{WorkOrderID: c.RecordID, QuestionID: q.ID})
	}
	text, err := store.Encode(value)
	if err != nil {
		return err
	}
	same, err := sameAnswer(old, text)
	if err != nil || same {
		return err
	}
	q.Value = text
	c.Changes["answers."+q.ID] = effects.FromTo(old, json.RawMessage(text))
	return c.Upsert(&models.Answer{WorkOrderID: c.RecordID, QuestionID: q.ID, Value: text, AnsweredAt: c.At, AnsweredBy: c.Actor.IdentityID})
}

// sameAnswer compares two JSON values, numbers digit by digit. Their text may
// differ because jsonb has its own spacing and escapes.
func sameAnswer(old, text []byte) (bool, error) {
	if old == nil {
		return false, nil
	}
	var values [2]any
	for i, value := range [][]byte{old, text} {
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return false, fmt.Errorf("decode an answer: %w", err)
		}
	}
	return reflect.DeepEqual(values[0], values[1]), nil
}

// requireAnswers rejects a completion without answers to all required questions.
// Errors: rule_violation (required_questions) with the ids of the unanswered ones.
func requireAnswers(questions []formQuestion) error {
	var missing []string
	for _, q := range questions {
		var value any
		if q.Value != nil {
			if err := json.Unmarshal(q.Value, &value); err != nil {
				return fmt.Errorf("decode a stored answer: %w", err)
			}
		}
		if q.Required && !models.Answered(value) {
			missing = append(missing, q.ID)
		}
	}
	return unansweredError(missing)
}

// unansweredError is the error for required questions without answers, nil if absent.
func unansweredError(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	violation := models.Violation(models.RuleRequiredQuestions,
		"Required questions have no answer: %s.", strings.Join(missing, ", "))
	violation.QuestionIDs = missing
	return violation
}
