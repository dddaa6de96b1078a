# The targets call scripts/, one script for each job. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo run test test-short soak fuzz lint bench build invoke deploy release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## real events from many writers, followers reading along, a kill -9, and a reckoning of what everybody saw
	@scripts/demo

run: ## start a server to try things out; prints its address and token
	@go run ./cmd/millrace dev

test: ## every test that this machine can run; says what it left out
	@scripts/test

test-short: ## a first verdict within two minutes: go vet, and the tests of most packages with small numbers
	@scripts/test-short

fuzz: ## each fuzz test for a while: make fuzz TIME=10m NAME=ParseSeq
	@scripts/fuzz "$(or $(TIME),1m)" "$(NAME)"

soak: ## everything at once, killed all the time, for a minute; an hour: make soak FOR=1h
	@scripts/soak $(if $(FOR),-for $(FOR))

lint: ## formatting, static checks, the module file
	@scripts/lint

bench: ## rates and latencies, beside the disk's own
	@scripts/bench

build: ## the program, and every function for Lambda; ARCH=arm64 or amd64
	@scripts/build $(ARCH)

invoke: ## run one function once in Lambda's environment: make invoke FN=emit EV=one
	@scripts/invoke "$(FN)" "$(EV)"

deploy: ## build and deploy to AWS; make deploy TO=prod SET="LogLevel=debug" for other values
	@scripts/deploy $(TO) $(SET)

release: ## archives, bills of materials, checksums and images in bin/release; pushes nothing
	@scripts/release

clean: ## remove what builds leave behind
	@rm -rf bin .aws-sam
