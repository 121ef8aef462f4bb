package service

import (
	"bytes"
	"encoding/json"
	"fmt"
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
