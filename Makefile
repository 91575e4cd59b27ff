# The front door. `make` lists what there is.
.DEFAULT_GOAL := help
.PHONY: help build up down reset status db-init topic-create run-service db-count outbox-count outbox-pending \
        chaos-kill-publisher run-publisher run-consumer dup-count end-offsets shop storm load bench dual-write verify demo trace-demo stack-up stack-demo stack-down stack-test k8s-up k8s-demo k8s-scale k8s-netpol k8s-down alerts manifests test test-faults writers pooler fmt fmt-check lint tidy deny
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
COUNT ?= 20
BATCH_SIZE ?=
DELIVERY ?=
ORDERS ?= 200
KILLS ?= 5
MISBEHAVE ?= 10
RATE ?= 200
DURATION ?= 30s
TARGET := $(or $(CARGO_TARGET_DIR),target)
BREW := $(TARGET)/debug/brew
LAB = $(CARGO) build --quiet --workspace --bins && $(BREW) lab

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build everything
	@$(CARGO) build --workspace --bins

demo: build ## The whole story with a crash in the middle, on infrastructure of its own
	@$(BREW) demo

trace-demo: build ## One order's trace through all services, out of a Jaeger in Docker or the one that JAEGER_URL names
	@$(BREW) trace-demo

ALERTS := deploy/prometheus
alerts: ## Check and test the alerts, by Prometheus' promtool
	@promtool check rules $(ALERTS)/alerts.yml && promtool test rules $(ALERTS)/alerts_test.yml

# Checked without running anything; kubectl renders the overlays.
MANIFESTS := $(TARGET)/manifests/bin
$(MANIFESTS)/ready: k8s/check.txt
	@python3 -m venv $(TARGET)/manifests && $(MANIFESTS)/pip install --quiet -r k8s/check.txt && touch $@

manifests: $(MANIFESTS)/ready ## Check the Dockerfile, docker-compose.yml and every Kubernetes overlay: schemas, house rules, edges
	@$(MANIFESTS)/hadolint Dockerfile
	@$(MANIFESTS)/yamllint -c k8s/yamllint.yaml docker-compose.yml k8s deploy
	@$(MANIFESTS)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	@$(MANIFESTS)/python deploy/check_compose.py && $(MANIFESTS)/python k8s/check.py

# With bugs that can be switched on, for the tests of `brew verify`; no other build has them.
TESTED := --workspace --features runtime/seeded-bugs

test: ## All tests, on a Postgres and a Kafka of their own
	@$(CARGO) build $(TESTED) --bins
	@$(BREW) local run --profile test --fast --jaeger -- $(CARGO) test $(TESTED)

# BREW_FAULT_SEED gives a run's chances again, BREW_FAULT_ROUNDS takes them more often.
test-faults: ## Publishers and brokers that are killed, frozen and cut off: what is too long for `make test`
	@$(CARGO) build $(TESTED) --bins
	@$(BREW) local run --profile test-faults --fast -- $(CARGO) test $(TESTED) --test faults -- --nocapture --test-threads 2

pooler: ## The relay behind a PgBouncer in transaction mode, of the version that is installed
	@$(CARGO) build $(TESTED) --bins
	@$(BREW) local run --profile pooler --fast -- $(CARGO) test $(TESTED) --test pooler

# A Python with psycopg; the wheel brings libpq along.
WRITERS := $(TARGET)/writers
writers: ## The writers of docs/writers.md in psql, Python and Go, judged by `brew outbox selftest`
	@test -x $(WRITERS)/bin/python || python3 -m venv $(WRITERS)
	@$(WRITERS)/bin/python -c 'import psycopg' 2>/dev/null || $(WRITERS)/bin/pip install --quiet 'psycopg[binary]==3.2.*'
	@$(CARGO) build $(TESTED) --bins
	@PYTHON=$(abspath $(WRITERS))/bin/python $(BREW) local run --profile writers --fast -- \
	    $(CARGO) test $(TESTED) --test writers

up: build ## Start Postgres and Kafka
	@$(BREW) local up

down: build ## Stop them; the data stays
	@$(BREW) local down

reset: build ## Stop them and delete the data
	@$(BREW) local reset

status: build ## Say what runs where
	@$(BREW) local status

db-init: ## Lab 1: make the databases
	@$(LAB) db-init

topic-create: ## Lab 2: make the topics
	@$(LAB) topic-create

run-service: ## Lab 3: place COUNT orders through gRPC
	@$(LAB) run-service --count $(COUNT)

db-count: ## How many orders there are
	@$(LAB) db-count

outbox-count: ## How many rows the outbox has
	@$(LAB) outbox-count

outbox-pending: ## How many of them are not published
	@$(LAB) outbox-pending

chaos-kill-publisher: ## Lab 4: a publisher that dies after the acks of BATCH_SIZE records, before the mark
	@$(LAB) chaos-kill-publisher $(addprefix --batch-size=,$(BATCH_SIZE)) $(addprefix --delivery=,$(DELIVERY))

run-publisher: ## Lab 5: publish until nothing is pending
	@$(LAB) run-publisher $(addprefix --batch-size=,$(BATCH_SIZE)) $(addprefix --delivery=,$(DELIVERY))

run-consumer: ## Lab 6: consume until the topic is read to its end
	@$(LAB) run-consumer

dup-count: ## How many events the consumer has applied
	@$(LAB) dup-count

end-offsets: ## How many records the topic has
	@$(LAB) end-offsets

stack-up: ## The whole stack in Docker, awaited until it is healthy
	@docker compose up --build --wait

stack-demo: ## Orders that end in every way, on that stack; then one trace and everything else is checked
	@docker compose run --rm brew demo

stack-down: ## End it and delete its data
	@docker compose --profile '*' down --volumes

stack-test: ## The same, mistreated: every container killed under load, Kafka away; ends with nothing left
	@bash deploy/stack_test.sh

# On whichever cluster kubectl points to; `k8s/k8s.sh help` names the settings.
k8s-up: ## Build and load the images, apply k8s/overlays/local, wait until all is ready
	@bash k8s/k8s.sh up

k8s-demo: ## The demo and the trace's check in the cluster
	@bash k8s/k8s.sh demo

REPLICAS ?= 4
k8s-scale: ## Publishers from 1 to REPLICAS and back under load, with rolling updates and pods killed; then verify
	@bash k8s/k8s.sh scale $(REPLICAS)

k8s-netpol: $(MANIFESTS)/ready ## Every pair of a pod and a port tried for real, against the table in docs/deploy.md
	@$(MANIFESTS)/python k8s/netpol_test.py

k8s-down: ## Delete the namespace and all that is in it
	@bash k8s/k8s.sh down

shop: build ## The whole shop until Ctrl-C; then `brew order`, `brew stock` and `brew load` from another terminal
	@$(BREW) shop

storm: ## ORDERS orders with KILLS kills and MISBEHAVE % of provider calls going wrong, then verify
	@$(CARGO) build --quiet --workspace --bins && $(BREW) storm --orders $(ORDERS) --kills $(KILLS) --misbehave $(MISBEHAVE)

load: ## RATE orders a second for DURATION, optimised build, on a shop of its own (`make up` first); then verify
	@$(CARGO) build --release --workspace --bins && $(TARGET)/release/brew load --shop --rate $(RATE) --duration $(DURATION)

# Options of `brew bench`: BENCH="--repeats 5 --backlog 10000000 --held-snapshot"
BENCH ?=
bench: ## Rates, latency and cost beside this machine's ceilings, optimised build, on infrastructure of its own
	@$(CARGO) build --release --workspace --bins && $(TARGET)/release/brew bench --out $(TARGET)/bench $(BENCH)

dual-write: build ## The two ways that fail, beside the outbox
	@$(BREW) dual-write kafka-first && $(BREW) dual-write db-first

verify: ## Read every database, topic and book, and say whether all adds up
	@$(CARGO) build --quiet --workspace --bins && $(BREW) verify

fmt: ## Format
	@$(CARGO) fmt --all

fmt-check: ## Check the format
	@$(CARGO) fmt --all --check

lint: ## Clippy, warnings denied
	@$(CARGO) clippy --workspace --all-targets -- -D warnings

tidy: ## Check the arrows and the house rules
	@$(CARGO) run --quiet --package xtask -- tidy

deny: ## Check licences and sources of the dependencies
	@$(CARGO) deny check licenses bans sources
