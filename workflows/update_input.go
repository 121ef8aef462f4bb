package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
)

// errorInput is the type of the error of an update whose input has the wrong shape.
const errorInput = "invalid_input"

// textMembers decodes the input of an update: one JSON object with exactly the members,
// each a string. The SDK's own decoding would ignore a member that is missing, unknown or
// repeated, or written in another case.
//
// Decoding JSON is deterministic, which workflowcheck cannot see.
//
//workflowcheck:ignore
func textMembers(input json.RawMessage, names ...string) (map[string]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(input))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, inputError("The input is one JSON object with %s.", memberList(names))
	}
	members := map[string]string{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return nil, inputError("The input is not JSON.")
		}
		if !slices.Contains(names, name) {
			return nil, inputError("There is no member %q; the input has %s.", shorten(name), memberList(names))
		}
		if _, repeated := members[name]; repeated {
			return nil, inputError("The member %q is there twice.", name)
		}
		value, err := decoder.Token()
		text, isText := value.(string)
		if err != nil || !isText {
			return nil, inputError("The member %q must be a string.", name)
		}
		members[name] = text
	}
	if _, err := decoder.Token(); err != nil || decoder.More() {
		return nil, inputError("The input is not one JSON object.")
	}
	for _, name := range names {
		if _, there := members[name]; !there {
			return nil, inputError("The member %q is missing; the input has %s.", name, memberList(names))
		}
	}
	return members, nil
}

// memberList names the members for people.
func memberList(names []string) string {
	if len(names) == 0 {
		return "no members"
	}
	return "the members " + strings.Join(names, ", ")
}

// shorten limits the length of a string that an error repeats.
func shorten(text string) string {
	const most = 50
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func inputError(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), errorInput, nil)
}
