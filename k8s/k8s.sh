#!/usr/bin/env bash
# Brew on whichever cluster kubectl points to: `k8s/k8s.sh help`, or make k8s-up, k8s-demo, k8s-scale, k8s-down.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra KUBECTL <<<"${KUBECTL:-kubectl}"
read -ra LOAD_IMAGE <<<"${K8S_LOAD_IMAGE:-kind load docker-image}"
BUILD=${K8S_BUILD:-yes}
TIMEOUT=${K8S_TIMEOUT:-600}
RATE=${K8S_RATE:-50}
DURATION=${K8S_DURATION:-120}
KILLS=${K8S_KILLS:-20}

NAMESPACE=brew
OVERLAY=k8s/overlays/local
JAEGER=http://127.0.0.1:16686
# What is restarted and killed: all of Brew's own.
SERVICES=(order-service inventory-service payment-service payment-gateway outbox-publisher)

usage() {
    cat <<'END'
Brew on the cluster that kubectl points to, in the namespace `brew`.

  k8s/k8s.sh up                build the images, load them into the cluster, apply k8s/overlays/local, wait until all is ready
  k8s/k8s.sh demo              orders that end in every way, one of them as a waterfall of its trace, and the check of everything
  k8s/k8s.sh scale [REPLICAS]  under load: publishers from 1 to REPLICAS (4), every service restarted as for a new version, pods
                               killed by force, publishers back to 1; then `brew verify`. Exit code 0: nothing lost, nothing twice
  k8s/k8s.sh down              delete the namespace, with its data

A cluster to try it on: `kind create cluster`; `kind delete cluster` ends it. It pulls Postgres, Kafka and Jaeger, unless Docker
has them here. Brew's own images are in no registry, so they are loaded into the nodes. How depends on the cluster:

  kind         K8S_LOAD_IMAGE='kind load docker-image'   (the default; add --name CLUSTER for one that is not called kind)
  minikube     K8S_LOAD_IMAGE='minikube image load'
  k3d          K8S_LOAD_IMAGE='k3d image import'
  others       a script of yours that takes an image's name: docker save NAME | ctr --namespace k8s.io images import -
  none needed  K8S_LOAD_IMAGE=true                       (Docker Desktop: the cluster has Docker's own images)

Settings, as environment variables:

  KUBECTL         how kubectl is called, in one word or several            kubectl
  K8S_LOAD_IMAGE  how an image gets into the cluster, see above            kind load docker-image
  K8S_BUILD       no: the images brew/*:dev are there already              yes
  K8S_TIMEOUT     seconds until something counts as stuck                  600
  K8S_RATE        orders a second                                          50
  K8S_DURATION    for how many seconds, and longer if the kills take longer  120
  K8S_KILLS       pods of each service to kill                             20

The same by hand, once the images are in the cluster:

  kubectl apply --kustomize k8s/overlays/local
  kubectl --namespace brew wait --for=condition=complete --timeout=10m job --all
  kubectl --namespace brew rollout status deployment/order-service
  kubectl --namespace brew exec deployment/brew-tools -- brew demo
  kubectl --namespace brew port-forward service/jaeger 16686      then http://127.0.0.1:16686
  kubectl --namespace brew scale deployment/outbox-publisher --replicas=4
  kubectl --namespace brew get pods --watch
END
}

k() { "${KUBECTL[@]}" --namespace "$NAMESPACE" "$@"; }
brew() { k exec deployment/brew-tools -- brew "$@"; }
say() { printf '%(%H:%M:%S)T  %s\n' -1 "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Says the command, then does it.
run() {
    printf '\n+ %s\n' "$*"
    "$@"
}

there() {
    "${KUBECTL[@]}" version >/dev/null 2>&1 || die "no cluster answers to: ${KUBECTL[*]} version"
}
is_up() {
    there
    [ -n "$(k get deployment brew-tools --ignore-not-found --output name)" ] || die "Brew is not in this cluster; make k8s-up"
}

up() {
    there
    if [ "$BUILD" != no ]; then run env BREW_VERSION=dev docker compose --profile tools build; fi
    load_images
    # The image may be another one under the same name, which Kubernetes does not see: old Jobs are deleted, and what runs
    # already is restarted.
    local before
    before=$(k get deployments --output name)
    k delete jobs --all --ignore-not-found
    run "${KUBECTL[@]}" apply --kustomize "$OVERLAY"
    if [ -n "$before" ]; then run "${KUBECTL[@]}" --namespace "$NAMESPACE" rollout restart deployments "${SERVICES[@]}" brew-tools; fi
    await_all
    k get pods
    echo
    say "up; next: make k8s-demo, then make k8s-scale"
}

# Ours, and those of the others that Docker has here; the cluster pulls the rest.
load_images() {
    local image
    for image in $("${KUBECTL[@]}" kustomize "$OVERLAY" | sed -n 's/^ *\(- \)\{0,1\}image: *//p' | sort --unique); do
        if docker image inspect "$image" >/dev/null 2>&1; then
            run "${LOAD_IMAGE[@]}" "$image"
        elif [[ $image == brew/* ]]; then
            die "image $image is not there; without K8S_BUILD=no it is built"
        fi
    done
}

await_all() {
    echo
    say "waiting for Postgres and Kafka, then for the Jobs, then for the Deployments"
    local one
    for one in $(k get statefulsets --output name); do await_rollout "$one"; done
    await_jobs
    for one in $(k get deployments --output name); do await_rollout "$one"; done
}

await_rollout() {
    k rollout status "$1" --timeout "${TIMEOUT}s" || {
        k get pods
        die "$1 is not ready after $TIMEOUT s; kubectl --namespace $NAMESPACE describe pods tells why"
    }
}

# `kubectl wait` would not see that a Job has failed.
await_jobs() {
    local deadline=$((SECONDS + TIMEOUT)) name complete failed said='' open
    local columns='N:.metadata.name,C:.status.conditions[?(@.type=="Complete")].status,F:.status.conditions[?(@.type=="Failed")].status'
    while :; do
        open=0
        while read -r name complete failed; do
            if [ "$failed" = True ]; then
                k logs "job/$name" || true
                die "job $name has failed"
            elif [ "$complete" != True ]; then
                open=$((open + 1))
            elif [[ $said != *" $name "* ]]; then
                said+=" $name "
                echo "job $name is done"
            fi
        done < <(k get jobs --ignore-not-found --no-headers --output custom-columns="$columns")
        [ "$open" -gt 0 ] || return 0
        [ $SECONDS -lt $deadline ] || { k get pods; die "Jobs are not done after $TIMEOUT s"; }
        sleep 1
    done
}

demo() {
    is_up
    local seen order
    seen=$(mktemp)
    printf '\n+ %s\n' "kubectl --namespace $NAMESPACE exec deployment/brew-tools -- brew demo"
    brew demo | tee "$seen"
    # The demo has shown its first order; this is the last one that it has named.
    order=$(grep --only-matching 'order-[0-9][0-9]*' "$seen" | tail -n 1)
    rm "$seen"
    printf '\n+ %s\n' "kubectl --namespace $NAMESPACE exec deployment/brew-tools -- brew trace $order --check"
    brew trace "$order" --check
    cat <<END

To look at it in a browser:

  ${KUBECTL[*]} --namespace $NAMESPACE port-forward service/jaeger 16686

and $JAEGER, or the link above.
END
}

scale() {
    local replicas=${1:-4}
    BEGAN=$SECONDS
    [[ $replicas =~ ^[1-9][0-9]*$ ]] || die "how many publishers? make k8s-scale REPLICAS=4"
    is_up
    WORK=$(mktemp --directory)
    BEFORE=$(k get deployment outbox-publisher --output 'jsonpath={.spec.replicas}')
    trap clean_up EXIT

    say "one publisher, and $RATE orders a second from now on"
    publishers 1
    # With its children in a process group of its own, so that they can be ended together.
    set -m
    load &
    LOADING=$!
    set +m
    publishers "$replicas"
    restarts
    kills
    publishers 1
    touch "$WORK/enough"
    wait "$LOADING" || true
    say "orders accepted: $(sum accepted)"
    await_all >/dev/null
    local verdict=0
    verify || verdict=$?
    table "$replicas" "$verdict" $((SECONDS - BEGAN))
}

publishers() {
    k scale deployment/outbox-publisher --replicas "$1" >/dev/null
    await_rollout deployment/outbox-publisher >/dev/null
    say "publishers: $1"
}

# Orders for as long as was asked, then until `enough`.
load() {
    local number=0 seconds=$DURATION
    while :; do
        brew load --rate "$RATE" --duration "${seconds}s" --no-verify --json >"$WORK/load.$number" 2>"$WORK/load.$number.errors" || true
        [ ! -e "$WORK/enough" ] || return 0
        sleep 1
        number=$((number + 1)) seconds=10
    done
}

# The sum of a figure over all runs of `load`.
sum() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$WORK"/load.* | awk '{n += $1} END {print n + 0}'; }

# Each service gets new pods, one for one, as with a new version of it.
restarts() {
    local service
    : >"$WORK/restarted"
    for service in "${SERVICES[@]}"; do
        k rollout restart "deployment/$service" >/dev/null
        await_rollout "deployment/$service" >/dev/null
        echo "$service" >>"$WORK/restarted"
        say "rolling restart: $service"
    done
}

# One pod of each service in turn, spread over what is left of the load.
kills() {
    local round service began=$SECONDS left=$((BEGAN + DURATION - SECONDS)) due
    : >"$WORK/killed"
    for ((round = 1; round <= KILLS; round++)); do
        for service in "${SERVICES[@]}"; do
            kill_one "$service" || say "no pod of $service could be killed"
        done
        if [ $((round % 5)) = 0 ]; then say "pods killed: $(wc -l <"$WORK/killed")"; fi
        due=$((began + left * round / KILLS))
        if [ $SECONDS -lt $due ]; then sleep $((due - SECONDS)); fi
    done
}

# Counts only when the pod, by its unique id, is gone.
kill_one() {
    local service=$1 deadline=$((SECONDS + TIMEOUT)) pod id now
    local columns='N:.metadata.name,U:.metadata.uid,R:.status.conditions[?(@.type=="Ready")].status,D:.metadata.deletionTimestamp'
    while :; do
        read -r pod id < <(k get pods --selector "app.kubernetes.io/name=$service" --no-headers --output custom-columns="$columns" |
            awk '$3 == "True" && $4 == "<none>" {print $1, $2}' | shuf --head-count 1) && break
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.5
    done
    k delete pod "$pod" --force --grace-period 0 --wait=false >/dev/null 2>&1 || return 1
    # An answer that fails is none.
    while now=$(k get pod "$pod" --ignore-not-found --output 'jsonpath={.metadata.uid}') || now=$id; [ "$now" = "$id" ]; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.2
    done
    echo "$service $pod $id" >>"$WORK/killed"
}

# Orders come to their ends and publishers to theirs; then all must hold. Exit codes as `brew verify`.
verify() {
    local deadline=$((SECONDS + TIMEOUT)) code
    say "waiting for the orders' ends; then brew verify"
    while :; do
        code=0
        brew verify >"$WORK/verify" 2>&1 || code=$?
        if [ "$code" != 1 ] || [ $SECONDS -ge $deadline ]; then break; fi
        sleep 5
    done
    echo
    cat "$WORK/verify"
    return "$code"
}

table() {
    local replicas=$1 verdict=$2 seconds=$3 service killed restarted good=yes
    printf '\n%-20s %-18s %s\n' service 'rolling restart' 'pods killed'
    for service in "${SERVICES[@]}"; do
        killed=$(grep --count "^$service " "$WORK/killed" || true)
        restarted=$(grep --count --line-regexp "$service" "$WORK/restarted" || true)
        [ "$killed" -ge "$KILLS" ] && [ "$restarted" -gt 0 ] || good=no
        printf '%-20s %-18s %s of %s\n' "$service" "$restarted" "$killed" "$KILLS"
    done
    [ "$(sum accepted)" -gt 0 ] || good=no
    [ "$verdict" = 0 ] || good=no
    cat <<END

orders               $(sum accepted) accepted, $(sum turned_away) turned away and taken later, $(sum failed) failed
first failure        $(sed -n 's/^ *"first_failure": "\(.*\)",*$/\1/p' "$WORK"/load.* | head -n 1)
publishers           1 -> $replicas -> 1
verify               exit code $verdict
time                 $seconds s
END
    if [ "$good" = yes ]; then
        echo "PASS: no event was lost, and none took effect twice"
    else
        echo "FAIL"
        return 1
    fi
}

clean_up() {
    if [ -n "${LOADING:-}" ]; then kill -- "-$LOADING" 2>/dev/null || true; fi
    k scale deployment/outbox-publisher --replicas "$BEFORE" >/dev/null
    rm -rf "$WORK"
}

down() {
    there
    run "${KUBECTL[@]}" delete namespace "$NAMESPACE" --ignore-not-found --wait --timeout "${TIMEOUT}s"
}

case ${1:-help} in
    up | demo | down) "$1" ;;
    scale) scale "${2:-}" ;;
    help | -h | --help) usage ;;
    *) usage >&2; exit 2 ;;
esac
