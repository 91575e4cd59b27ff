#!/usr/bin/env python3
"""Tries every pair of a pod and a port in the cluster, with real connections: those in the table of docs/deploy.md must
come about, and no other (`make k8s-netpol`, after `make k8s-up`).

In the place of each workload stands a pod with its labels and a shell; one more has labels that no policy knows.
"""

import json
import subprocess
import sys

import check

NAMESPACE = "brew"
# Has bash, and is in the cluster anyway.
IMAGE = "postgres:17-bookworm"
# Also ports that listen and are for nobody here.
TARGETS = [
    ("order-service", 50051), ("order-service", 9100),
    ("inventory-service", 50052), ("inventory-service", 9100),
    ("payment-service", 50053), ("payment-service", 9100),
    ("payment-gateway", 8080), ("payment-gateway", 9100),
    ("outbox-publisher", 9100),
    ("brew-postgres", 5432),
    ("brew-kafka", 9092), ("brew-kafka", 9093),
    ("jaeger", 4317), ("jaeger", 16686), ("jaeger", 13133),
]


def kubectl(*arguments, given=None):
    command = [*check.kubectl(), "--namespace", NAMESPACE, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def probe(name, labels):
    container = {
        "name": "probe", "image": IMAGE, "command": ["sleep", "600"],
        "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "automountServiceAccountToken": False, "enableServiceLinks": False, "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0, "containers": [container],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"probe-{name}", "labels": labels}, "spec": spec}


def addresses():
    pods = json.loads(kubectl("get", "pods", "--output", "json"))["items"]
    running = [pod for pod in pods if pod["status"].get("phase") == "Running" and not pod["metadata"]["name"].startswith("probe-")]
    return {pod["metadata"]["labels"].get("app.kubernetes.io/name"): pod["status"]["podIP"] for pod in running}


def reached(name, ips):
    tries = [f"(timeout 3 bash -c 'exec 3<>/dev/tcp/{ips[to]}/{port}' 2>/dev/null && echo {to} {port}) &" for to, port in TARGETS]
    said = kubectl("exec", f"probe-{name}", "--", "bash", "-c", "\n".join([*tries, "wait"]))
    return {(name, to, int(port)) for to, port in (line.split() for line in said.splitlines())}


def main():
    objects = check.render("local")
    wanted = check.edges(objects, "egress", "to")
    labels = {labels["app.kubernetes.io/name"]: labels for _, labels, _ in check.pods(objects)}
    labels["stranger"] = {"app.kubernetes.io/name": "stranger"}
    ips = addresses()
    names = [f"pod/probe-{name}" for name in labels]
    try:
        for name, of in labels.items():
            kubectl("apply", "--filename", "-", given=json.dumps(probe(name, of)))
        kubectl("wait", "--for=condition=Ready", "--timeout=120s", *names)
        found = set().union(*(reached(name, ips) for name in labels))
    finally:
        kubectl("delete", "--force", "--grace-period=0", "--ignore-not-found", *names)
    tried = {(name, to, port) for name in labels for to, port in TARGETS}
    wrong = sorted((found ^ wanted) & tried)
    for edge in wrong:
        print(f"{edge}: {'open, and not in the table' if edge in found else 'in the table, and closed'}", file=sys.stderr)
    print(f"{len(tried)} pairs tried, {len(found & wanted)} open as they should be, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
