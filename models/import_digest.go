package models

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// ImportDigest is what imports left in the fields of the entity that a key of an
// import file named (docs/import.md).
type ImportDigest struct {
	OrganizationID string `gorm:"primaryKey"`
	Key            string `gorm:"primaryKey"`
	Kind           string
	Digests        Digests
}

// Digests is a jsonb column with a digest for each of several names.
type Digests map[string]string

// Value writes the digests as JSON text.
func (d Digests) Value() (driver.Value, error) {
	b, err := json.Marshal(map[string]string(d))
	if err != nil {
		return nil, fmt.Errorf("encode digests: %w", err)
	}
	return string(b), nil
}

// Scan reads the digests from JSON text.
func (d *Digests) Scan(src any) error {
	switch text := src.(type) {
	case string:
		return json.Unmarshal([]byte(text), (*map[string]string)(d))
	case []byte:
		return json.Unmarshal(text, (*map[string]string)(d))
	}
	return fmt.Errorf("cannot read digests from a %T", src)
}
