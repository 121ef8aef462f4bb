package service

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode writes a record as JSON, as every response and event shows it.
func Encode(record any) ([]byte, error) {
	if r, ok := record.(jsonRecord); ok {
		return r.appendJSON(make([]byte, 0, recordSize)), nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
