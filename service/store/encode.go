package store

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encoding are the options of all responses and events. Numbers of answers keep their digits, and
// omitempty means what it means in encoding/json, which decodes and documents the same structs.
var encoding = json.JoinOptions(
	json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsonv1.OmitEmptyWithLegacySemantics(true),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error { return e.WriteValue(jsontext.Value(n)) })),
)

// Encode writes a record as JSON, as every response and event shows it.
func Encode(record any) ([]byte, error) {
	body, err := json.Marshal(record, encoding)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return body, nil
}
