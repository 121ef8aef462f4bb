// Package clients pins what lint-clients needs: ogen, and the packages that generated clients import.
package clients

import (
	_ "github.com/oapi-codegen/nullable"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/ogen-go/ogen/middleware"
	_ "github.com/ogen-go/ogen/otelogen"
	_ "go.opentelemetry.io/otel"
	_ "go.opentelemetry.io/otel/trace"
)
