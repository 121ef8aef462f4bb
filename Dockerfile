# One image for migrate, namespace, api and worker: a static binary and the public CA
# certificates, nothing else.
#
#   docker build --build-arg VERSION=1.2.3 --tag millwright:1.2.3 .
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/millwright ./cmd/millwright

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/millwright /millwright
USER 65532:65532
ENTRYPOINT ["/millwright"]
CMD ["help"]
