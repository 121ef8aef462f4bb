package api

import (
	"maps"
	"slices"

	"github.com/gin-gonic/gin"
)

// Routes returns the routes of the router, for tests that walk all of them.
func (a *API) Routes() gin.RoutesInfo { return a.engine.Routes() }

// ProblemStatuses returns the statuses of problems.
func ProblemStatuses() []int { return slices.Collect(maps.Values(statuses)) }
