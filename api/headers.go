package api

import "github.com/gin-gonic/gin"

// harden sets what every answer carries against misuse by browsers and caches.
// Answers hold records of one integration: none but its own client may keep
// them, and that one asks again (ETag). Operations that know better say so.
func harden(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "private, no-cache")
	c.Next()
}
