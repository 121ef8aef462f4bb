package receivers

import "embed"

// Files are the receivers verify.go, verify.js, verify.py and verify.php.
//
//go:embed verify.*
var Files embed.FS
