package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"millwright/models"
)

// fingerprint returns a digest of the body's JSON value: bodies that differ in white
// space, in the order of members, or in how strings and numbers are written have the
// same (api.md 4.17). RFC 8785 would round numbers to 64 bits.
func fingerprint(body []byte) ([]byte, error) {
	canonical := body
	if len(body) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var value any
		err := decoder.Decode(&value)
		if err == nil {
			canonical, err = json.Marshal(canonicalNumbers(value)) // sorts members
		}
		if err != nil {
			return nil, fmt.Errorf("digest a body: %w", err)
		}
	}
	sum := sha256.Sum256(canonical)
	return sum[:], nil
}

// canonicalNumbers writes equal numbers in decoded JSON in the same way.
func canonicalNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, ok := models.ParseNumber(v); ok {
			return json.Number(n.Reduced().String())
		}
	case map[string]any:
		for name, field := range v {
			v[name] = canonicalNumbers(field)
		}
	case []any:
		for i, item := range v {
			v[i] = canonicalNumbers(item)
		}
	}
	return value
}
