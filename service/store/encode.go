package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
)

// Encode writes a record as JSON, as every response and event shows it.
func Encode(record any) ([]byte, error) {
	return AppendRecord(make([]byte, 0, RecordSize), record)
}

// AppendRecord appends what Encode writes.
func AppendRecord(b []byte, record any) ([]byte, error) {
	if r, ok := record.(JSONRecord); ok {
		return r.AppendJSON(b), nil
	}
	buffer := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// JSONRecord is a record that appends its JSON.
type JSONRecord interface{ AppendJSON(b []byte) []byte }

// RecordSize is about how many bytes a record has.
const RecordSize = 1 << 10

// AppendText appends the name of a member, with what precedes it, and a string.
func AppendText[S ~string](b []byte, name string, text S) []byte {
	b, err := jsontext.AppendQuote(append(b, name...), text)
	if err != nil {
		panic(err) // impossible: strings in the database are UTF-8
	}
	return b
}

// AppendOptional is AppendText for a string or null.
func AppendOptional(b []byte, name string, text *string) []byte {
	if text == nil {
		return append(append(b, name...), "null"...)
	}
	return AppendText(b, name, *text)
}

// AppendTime is AppendText for a time or null.
func AppendTime(b []byte, name string, at *models.Time) []byte {
	b = append(b, name...)
	if at == nil {
		return append(b, "null"...)
	}
	return at.AppendJSON(b)
}

// AppendTexts is AppendText for a list of strings.
func AppendTexts(b []byte, name string, values []string) []byte {
	b = append(b, name...)
	before := "["
	for _, text := range values {
		b, before = AppendText(b, before, text), ","
	}
	if len(values) == 0 {
		b = append(b, '[')
	}
	return append(b, ']')
}

// AppendEncoded appends the name of a member and JSON from Postgres.
func AppendEncoded(b []byte, name string, value []byte) []byte {
	return append(append(b, name...), value...)
}
