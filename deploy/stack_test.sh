#!/usr/bin/env bash
# The stack in Docker, as a person starts it and then mistreats it: `make stack-test`. Ends with nothing left.
#
# STACK_BUILD=no: the images brew/*:dev are there already. STACK_OUTAGE_S: how long Kafka is away, 60 s unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RATE=20
OUTAGE_S=${STACK_OUTAGE_S:-60}
# From before the first kill until after Kafka is back.
LOAD_S=$((OUTAGE_S + 80))
SERVICES=(order-service inventory-service payment-service payment-gateway outbox-publisher)
# A project of its own, beside one that may run.
export COMPOSE_PROJECT_NAME=brew-test
for port in ORDER INVENTORY PAYMENT GATEWAY POSTGRES KAFKA JAEGER OTLP; do
    # Any that is free.
    export "BREW_${port}_PORT=0"
done

WORK=$(mktemp --directory)
began=$SECONDS
say() { printf '%(%H:%M:%S)T  %4d s  %s\n' -1 $((SECONDS - began)) "$*"; }
die() {
    say "FAIL: $*"
    dc logs --no-color --tail 60 "${SERVICES[@]}" >&2 || true
    exit 1
}
dc() { docker compose --progress quiet "$@"; }
brew() { dc run --rm --no-TTY brew "$@"; }
ids() { dc ps --all --quiet | sort; }
end() {
    # Of a job of a stack that is gone there is nothing to end.
    kill "${LOADING:-}" 2>/dev/null || true
    dc --profile '*' down --volumes --timeout 20 >/dev/null 2>&1 || true
    rm -rf "$WORK"
}
trap end EXIT

# A broker that takes its time: who needs it waits, and nothing gives up.
cat >"$WORK/slow.yaml" <<'END'
services:
  kafka:
    entrypoint: [bash, -c, "sleep 45 && exec /etc/kafka/docker/run"]
END

build=(--build)
[ "${STACK_BUILD:-yes}" != no ] || build=(--no-build)
dc --file docker-compose.yml --file "$WORK/slow.yaml" up "${build[@]}" --wait ||
    die "it does not come up with a slow Kafka"
say "up, with a Kafka that began 45 s late"
dc --profile '*' down --volumes --timeout 20
dc up --no-build --wait || die "it does not come up"
say "up from nothing"
before=$(ids)
dc up --no-build --wait || die "a second \`up --wait\` fails"
[ "$before" = "$(ids)" ] || die "a second \`up\` makes something anew"
say "a second \`up --wait\` changes nothing"
dc up --no-build --wait --scale outbox-publisher=3
[ "$(dc ps --quiet outbox-publisher | wc -l)" = 3 ] || die "there are not three publishers"
say "three publishers"
brew demo >"$WORK/demo" || { cat "$WORK/demo"; die "the demo"; }
tail -n 1 "$WORK/demo"

say "$RATE orders a second from now on"
brew load --rate "$RATE" --duration "${LOAD_S}s" --no-verify --json >"$WORK/load" 2>"$WORK/errors" &
LOADING=$!
# The demo has placed six.
until brew order get order-20 >/dev/null 2>&1; do
    kill -0 "$LOADING" 2>/dev/null || { cat "$WORK/errors"; die "no load"; }
done
for service in "${SERVICES[@]}" jaeger postgres; do
    dc kill --signal SIGKILL "$service"
    dc up --no-build --no-recreate --wait --scale outbox-publisher=3 || die "$service does not come back"
    say "$service was killed and is back"
done
dc stop kafka
sleep "$OUTAGE_S"
dc start kafka
# `up --wait` would give up on those that say, rightly, that they are not ready.
deadline=$((SECONDS + 120))
while dc ps --format '{{.Name}} {{.Health}}' | grep --quiet --invert-match ' healthy$'; do
    [ $SECONDS -lt $deadline ] || { dc ps; die "not all come back after an outage of Kafka"; }
    sleep 1
done
say "Kafka was away for $OUTAGE_S s"
wait "$LOADING" || say "some calls failed while order-service was away"
cat "$WORK/load"
grep --quiet '"accepted": [1-9]' "$WORK/load" || { cat "$WORK/errors"; die "no order was accepted"; }
deadline=$((SECONDS + 180))
until brew verify >"$WORK/verify" 2>&1; do
    [ $SECONDS -lt $deadline ] || { cat "$WORK/verify"; die "not all adds up"; }
    sleep 3
done
tail -n 1 "$WORK/verify"
dc ps --quiet | xargs docker stats --no-stream --format '{{.Name}} {{.MemUsage}}'

dc --profile '*' down --volumes --timeout 20
left=$(docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME"
    docker volume ls --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")
[ -z "$left" ] || die "left over: $left"
say "PASS: nothing lost, nothing twice, nothing left over"
