# syntax=docker/dockerfile:1

# The build stage runs on the builder's own platform and cross-compiles, so no emulation is needed.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=development
ARG DATE=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath \
    -ldflags "-s -w -X main.stampedVersion=${VERSION} -X main.stampedDate=${DATE}" \
    -o /out/ankusa-connect . \
 && mkdir -p /out/tmp /out/etc \
 && chmod 1777 /out/tmp \
 && echo 'ankusa:x:65532:65532::/:/sbin/nologin' > /out/etc/passwd

# Nothing but the static binary, certificates, time zones and a folder for temporary files.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /usr/local/go/lib/time/zoneinfo.zip
COPY --from=build /out/etc/passwd /etc/passwd
COPY --from=build /out/tmp /tmp
COPY --from=build /out/ankusa-connect /ankusa-connect
ENV ZONEINFO=/usr/local/go/lib/time/zoneinfo.zip
USER 65532:65532
# The engine's HTTP server: /ping, /ready, /metrics.
EXPOSE 4195
ENTRYPOINT ["/ankusa-connect"]
CMD ["run", "/pipeline.yaml"]
