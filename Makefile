# `make` or `make help` lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
DATE    ?= $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
LDFLAGS  = -s -w -X main.stampedVersion=$(VERSION) -X main.stampedDate=$(DATE)

STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help build run test check fuzz bench integration ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./ankusa-connect, static, with the version stamped in
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o ankusa-connect .

run: ## run the quickstart against an SQS on this machine
	go run . local run ./examples/quickstart.yaml

test: ## all tests, with the race detector
	go test -race -shuffle=on ./...

check: ## formatting, vet, go fix, staticcheck, go.mod
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go fix -diff ./...
	go mod tidy -diff
	$(STATICCHECK) ./...

fuzz: ## every fuzz target, 20 seconds each (FUZZTIME=1m for longer)
	@.ci/fuzz $(or $(FUZZTIME),20s)

bench: ## all benchmarks, ten times, for benchstat
	go test -run '^$$' -bench . -benchmem -count 10 ./...

integration: ## wire tests against what SQS_ENDPOINT and PUBSUB_EMULATOR_HOST name (docker compose -f docker-compose.integration.yml up -d)
	@test -n "$$SQS_ENDPOINT$$PUBSUB_EMULATOR_HOST" || { echo "set SQS_ENDPOINT (http://127.0.0.1:4566) and PUBSUB_EMULATOR_HOST (127.0.0.1:4588)"; exit 1; }
	go test -count=1 -v ./integration

ci: ## the gate, as it runs for every change
	.ci/run

clean: ## remove what the other targets made
	rm -rf ankusa-connect dist .ci/peers
