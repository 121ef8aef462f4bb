// Package migrations holds the schema as numbered SQL files, embedded in the
// binary and applied in order by `millwright migrate`.
package migrations

import "embed"

// Files are the migrations, named NNNNN_subject.sql, in goose's form.
//
//go:embed *.sql
var Files embed.FS
