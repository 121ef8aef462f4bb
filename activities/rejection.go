package activities

import (
	"errors"
	"strings"

	"go.temporal.io/sdk/temporal"

	"millwright/models"
)

// rejection makes an error of the service final, with the service's sentence, unless
// another attempt may succeed.
func rejection(err error) error {
	rejected, ok := errors.AsType[*models.Error](err)
	if !ok || rejected.Code == models.CodeUnavailable || rejected.Code == models.CodeInternal {
		return err
	}
	sentence := rejected.Detail
	if len(rejected.Fields) > 0 {
		details := make([]string, len(rejected.Fields))
		for i, field := range rejected.Fields {
			details[i] = field.Detail
		}
		sentence = strings.Join(details, " ")
	}
	return temporal.NewNonRetryableApplicationError(sentence, string(rejected.Code), nil)
}
