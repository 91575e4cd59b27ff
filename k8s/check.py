#!/usr/bin/env python3
"""Renders every overlay and says what is wrong with it: schema, house rules, and the table of who talks to whom.

    make manifests

Needs kubectl (KUBECTL names another one, in one word or several) and the packages of k8s/check.txt. Custom resources
have no schema here: their API version is held to the list below, the rest is not looked at.
"""

import copy
import os
import pathlib
import re
import shlex
import subprocess
import sys

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
OVERLAYS = ["local", "production"]
SCHEMA = "1.34"
CUSTOM = {
    "Cluster": "postgresql.cnpg.io/v1",
    "Database": "postgresql.cnpg.io/v1",
    "Kafka": "kafka.strimzi.io/v1",
    "KafkaNodePool": "kafka.strimzi.io/v1",
    "KafkaTopic": "kafka.strimzi.io/v1",
    "KafkaUser": "kafka.strimzi.io/v1",
    "ScaledObject": "keda.sh/v1alpha1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
}
WORKLOADS = ("Deployment", "StatefulSet", "Job")
# Not ours: their images have users of their own.
FOREIGN_USERS = 999
# The longest drain_grace_ms among the services.
DRAIN_S = 15


def kubectl():
    return shlex.split(os.environ.get("KUBECTL", "kubectl"))


def render(overlay):
    folder = ROOT / "k8s" / "overlays" / overlay
    text = subprocess.run([*kubectl(), "kustomize", str(folder)], check=True, capture_output=True, text=True).stdout
    return [one for one in yaml.safe_load_all(text) if one]


def name_of(one):
    return f"{one['kind']} {one['metadata']['name']}"


def schema(objects):
    for one in objects:
        kind = one["kind"]
        if kind in CUSTOM and "/" in one["apiVersion"] and one["apiVersion"].split("/")[0].count("."):
            if one["apiVersion"] != CUSTOM[kind]:
                yield f"{name_of(one)}: {one['apiVersion']}, wanted {CUSTOM[kind]}"
            continue
        try:
            kubernetes_validate.validate(one, SCHEMA, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{name_of(one)}: {error.message}"


def template(one):
    return one["spec"]["template"]


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def pods(objects):
    """Each workload's name, the labels of its pods, and their spec."""
    for one in of_kind(objects, *WORKLOADS):
        yield name_of(one), template(one)["metadata"]["labels"], template(one)["spec"]


def restricted(objects):
    for name, _, spec in pods(objects):
        security = spec.get("securityContext", {})
        if security.get("runAsNonRoot") is not True or security.get("runAsUser", 0) < FOREIGN_USERS:
            yield f"{name}: does not say which user it is"
        if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{name}: no seccomp profile"
        if spec.get("automountServiceAccountToken") is not False:
            yield f"{name}: has a token for the API server"
        if spec.get("enableServiceLinks") is not False:
            yield f"{name}: has service links"
        if spec.get("serviceAccountName", "default") == "default":
            yield f"{name}: no service account of its own"
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(key):
                yield f"{name}: {key}"
        if any("hostPath" in volume for volume in spec.get("volumes", [])):
            yield f"{name}: a path of the node"
        for container in spec.get("initContainers", []) + spec["containers"]:
            yield from restricted_container(f"{name}, {container['name']}", container, security)


def restricted_container(name, container, pod):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: may gain rights"
    if security.get("capabilities", {}).get("drop") != ["ALL"]:
        yield f"{name}: keeps capabilities"
    if security.get("readOnlyRootFilesystem") is not True:
        yield f"{name}: can write to its image"
    image, user = container["image"], security.get("runAsUser", pod.get("runAsUser", 0))
    if "/brew/" in f"/{image}" and user < 10000:
        yield f"{name}: user {user}"
    if not re.search(r"(:(?!latest$)[^/:]+|@sha256:[0-9a-f]{64})$", image):
        yield f"{name}: image {image} has no fixed tag"
    resources = container.get("resources", {})
    if "memory" not in resources.get("limits", {}):
        yield f"{name}: no memory limit"
    if "cpu" in resources.get("limits", {}):
        yield f"{name}: a CPU limit"
    for key in ("cpu", "memory"):
        if key not in resources.get("requests", {}):
            yield f"{name}: no {key} request"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "host" in container.get(probe, {}).get("httpGet", {}):
            yield f"{name}: {probe} names a host"


def is_in(selector, labels):
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for rule in selector.get("matchExpressions", []):
        there = labels.get(rule["key"]) in rule.get("values", [])
        if {"In": not there, "NotIn": there}[rule["operator"]]:
            return False
    return True


def deployments(objects):
    budgets = of_kind(objects, "PodDisruptionBudget")
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in of_kind(objects, "HorizontalPodAutoscaler", "ScaledObject")}
    for one in of_kind(objects, "Deployment"):
        name, spec, pod = name_of(one), one["spec"], template(one)["spec"]
        if one["metadata"]["name"] in scaled and "replicas" in spec:
            yield f"{name}: an autoscaler and a number of replicas"
        if one["metadata"]["labels"].get("app.kubernetes.io/component") not in ("service", "worker"):
            continue
        for container in pod["containers"]:
            probes = [container.get(probe, {}).get("httpGet", {}).get("path") for probe in ("readinessProbe", "livenessProbe")]
            if probes != ["/readyz", "/livez"] or "startupProbe" not in container:
                yield f"{name}: probes {probes}"
            pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            if pod.get("terminationGracePeriodSeconds", 30) <= pause + DRAIN_S:
                yield f"{name}: no time to drain"
        if spec["strategy"].get("rollingUpdate", {}).get("maxUnavailable") != 0:
            yield f"{name}: a rollout takes pods away"
        spread = [rule["whenUnsatisfiable"] for rule in pod.get("topologySpreadConstraints", [])]
        if set(spread) != {"ScheduleAnyway"}:
            yield f"{name}: is not spread"
        labels = template(one)["metadata"]["labels"]
        mine = [budget["spec"] for budget in budgets if is_in(budget["spec"]["selector"], labels)]
        if [budget.get("unhealthyPodEvictionPolicy") for budget in mine] != ["AlwaysAllow"]:
            yield f"{name}: {len(mine)} disruption budget(s), or one that a sick pod holds up"


def services(objects):
    for one in of_kind(objects, "Service"):
        found = [spec for _, labels, spec in pods(objects) if is_in({"matchLabels": one["spec"]["selector"]}, labels)]
        if not found:
            yield f"{name_of(one)}: selects no pod"
        names = {port.get("name") for spec in found for container in spec["containers"] for port in container.get("ports", [])}
        for port in one["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            if found and isinstance(target, str) and target not in names:
                yield f"{name_of(one)}: no container has a port {target}"


def namespaces(objects):
    for one in of_kind(objects, "Namespace"):
        labels = one["metadata"].get("labels", {})
        for mode in ("enforce", "warn", "audit"):
            if labels.get(f"pod-security.kubernetes.io/{mode}") != "restricted":
                yield f"{name_of(one)}: restricted is not set to {mode}"
    if not any(one["spec"]["podSelector"] == {} and set(one["spec"]["policyTypes"]) == {"Ingress", "Egress"}
               and not one["spec"].get("ingress") and not one["spec"].get("egress")
               for one in of_kind(objects, "NetworkPolicy")):
        yield "no policy denies everything else"


def edges(objects, direction, peer_key):
    """Which of our pods may talk to which, as one direction's policies say."""
    workloads = {labels["app.kubernetes.io/name"]: labels for _, labels, _ in pods(objects)}
    found = set()
    for one in of_kind(objects, "NetworkPolicy"):
        here = [name for name, labels in workloads.items() if is_in(one["spec"]["podSelector"], labels)]
        for rule in one["spec"].get(direction, []):
            peers = [peer["podSelector"] for peer in rule.get(peer_key, []) if set(peer) == {"podSelector"}]
            there = [name for name, labels in workloads.items() if any(is_in(peer, labels) for peer in peers)]
            for port in rule["ports"]:
                found |= {(a, b, port["port"]) for a in here for b in there}
    return found


def in_the_docs():
    """The rows `| a, b | c | 1, 2 |` under the heading in docs/deploy.md."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    part = text.split("## Who talks to whom", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([a-z, -]+) \| ([a-z-]+) \| ([0-9, ]+) \|$", part, re.MULTILINE)
    split = lambda cell: [word.strip() for word in cell.split(",")]
    return {(a, to, int(port)) for froms, to, ports in rows for a in split(froms) for port in split(ports)}


def network(objects):
    out = edges(objects, "egress", "to")
    into = {(a, b, port) for b, a, port in edges(objects, "ingress", "from")}
    for edge in sorted(out ^ into):
        yield f"edge {edge}: {'no policy lets it in' if edge in out else 'no policy lets it out'}"
    docs = in_the_docs()
    for edge in sorted(out ^ docs):
        yield f"edge {edge}: {'not in docs/deploy.md' if edge in out else 'in docs/deploy.md only'}"


# What each rule must find: where in the object named, and what is put there (None: taken away).
FAULTS = [
    ("Deployment order-service", ("spec", "replica"), 2),
    ("Deployment order-service", ("spec", "replicas"), 2),
    ("Deployment order-service", ("spec", "strategy", "rollingUpdate", "maxUnavailable"), 1),
    ("Deployment order-service", ("spec", "template", "spec", "enableServiceLinks"), True),
    ("Deployment order-service", ("spec", "template", "spec", "securityContext", "runAsUser"), 0),
    ("Deployment order-service", ("spec", "template", "spec", "terminationGracePeriodSeconds"), 15),
    ("Deployment order-service", ("spec", "template", "spec", "containers", 0, "image"), "brew/order-service:latest"),
    ("Deployment order-service", ("spec", "template", "spec", "containers", 0, "livenessProbe", "httpGet", "path"), "/readyz"),
    ("Deployment order-service", ("spec", "template", "spec", "containers", 0, "resources", "limits"), None),
    ("Deployment order-service", ("spec", "template", "spec", "initContainers", 0, "securityContext"), None),
    ("Service order-service", ("spec", "ports", 0, "targetPort"), "gprc"),
    ("Service order-service", ("spec", "selector", "app.kubernetes.io/name"), "orders"),
    ("PodDisruptionBudget order-service", ("spec", "unhealthyPodEvictionPolicy"), None),
    ("Namespace brew", ("metadata", "labels", "pod-security.kubernetes.io/enforce"), "baseline"),
    ("NetworkPolicy default-deny", ("spec", "podSelector"), {"matchLabels": {"some": "pods"}}),
    ("NetworkPolicy to-kafka", ("spec", "egress", 0, "ports", 0, "port"), 9093),
    ("NetworkPolicy to-postgres", ("spec", "egress"), None),
]


def blind(objects):
    """The faults that no rule finds."""
    for name, path, value in FAULTS:
        spoilt = copy.deepcopy(objects)
        part = whole = next(one for one in spoilt if name_of(one) == name)
        for key in path[:-1]:
            part = part[key]
        if value is None:
            part.pop(path[-1])
        else:
            part[path[-1]] = value
        found = [text for rule in [*RULES[1:], network] for text in rule(spoilt)]
        if not found and not list(schema([whole])):
            yield f"{name}: nobody finds {path[-1]}: {value}"


RULES = [schema, restricted, deployments, services, namespaces]


def alerts():
    """The Prometheus operator's rules are the others, one for one."""
    load = lambda name: yaml.safe_load((ROOT / "deploy" / "prometheus" / name).read_text())
    if load("alerts.yml")["groups"] != load("prometheus-rule.yaml")["spec"]["groups"]:
        yield "prometheus-rule.yaml is not alerts.yml; its head says how it is made"


def main():
    complaints = [f"deploy/prometheus: {text}" for text in alerts()]
    for overlay in OVERLAYS:
        objects = render(overlay)
        rules = list(RULES)
        # Of the production overlay, the other ends are the operators' own.
        rules += [network, blind] if overlay == "local" else []
        found = [text for rule in rules for text in rule(objects)]
        complaints += [f"{overlay}: {text}" for text in found]
        print(f"{overlay}: {len(objects)} objects, {len(found)} complaint(s)")
    for text in complaints:
        print(text, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
