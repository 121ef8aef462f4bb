package service

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
)

// Encode writes a record as JSON, as every response and event shows it.
func Encode(record any) ([]byte, error) {
	return appendRecord(make([]byte, 0, recordSize), record)
}

// appendRecord appends what Encode writes.
func appendRecord(b []byte, record any) ([]byte, error) {
	if r, ok := record.(jsonRecord); ok {
		return r.appendJSON(b), nil
	}
	buffer := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// jsonRecord is a record that appends its JSON.
type jsonRecord interface{ appendJSON(b []byte) []byte }

// recordSize is about how many bytes a record has.
const recordSize = 1 << 10

// appendText appends the name of a member, with what precedes it, and a string.
func appendText[S ~string](b []byte, name string, text S) []byte {
	b, err := jsontext.AppendQuote(append(b, name...), text)
	if err != nil {
		panic(err) // impossible: strings in the database are UTF-8
	}
	return b
}

// appendOptional is appendText for a string or null.
func appendOptional(b []byte, name string, text *string) []byte {
	if text == nil {
		return append(append(b, name...), "null"...)
	}
	return appendText(b, name, *text)
}

// appendTime is appendText for a time or null.
func appendTime(b []byte, name string, at *models.Time) []byte {
	b = append(b, name...)
	if at == nil {
		return append(b, "null"...)
	}
	return at.AppendJSON(b)
}

// appendTexts is appendText for a list of strings.
func appendTexts(b []byte, name string, values []string) []byte {
	b = append(b, name...)
	before := "["
	for _, text := range values {
		b, before = appendText(b, before, text), ","
	}
	if len(values) == 0 {
		b = append(b, '[')
	}
	return append(b, ']')
}

// appendEncoded appends the name of a member and JSON from Postgres.
func appendEncoded(b []byte, name string, value []byte) []byte {
	return append(append(b, name...), value...)
}
