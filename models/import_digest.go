package models

// ImportDigest is what imports left in the fields of the entity that a key of an
// import file named (docs/import.md).
type ImportDigest struct {
	OrganizationID string `gorm:"primaryKey"`
	Key            string `gorm:"primaryKey"`
	Kind           string
	Digests        Digests `gorm:"serializer:json"`
}

// Digests are digests by the names of fields.
type Digests map[string]string
