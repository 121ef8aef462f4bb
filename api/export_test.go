package api

import "github.com/gin-gonic/gin"

// Routes returns the routes of the router, for tests that walk all of them.
func (a *API) Routes() gin.RoutesInfo { return a.engine.Routes() }
