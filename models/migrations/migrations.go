package migrations

import "embed"

// Files are the migrations.
//
//go:embed *.sql
var Files embed.FS
