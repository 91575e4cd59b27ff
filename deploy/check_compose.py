#!/usr/bin/env python3
"""Says what is wrong with docker-compose.yml by the house rules (`make manifests`); its schema is checked elsewhere."""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_MB = 2048


def megabytes(text):
    number, unit = re.fullmatch(r"(\d+)([mg])", text).groups()
    return int(number) * {"m": 1, "g": 1024}[unit]


def service(name, one, everything, variables):
    is_job = one.get("restart") == "no"
    if "container_name" in one:
        yield "a fixed container name: a second stack would collide"
    if not re.search(r":(?!latest$)[^/:]+$", one["image"]):
        yield f"image {one['image']} has no fixed tag"
    if "mem_limit" not in one:
        yield "no memory limit"
    if one.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in one.get("security_opt", []):
        yield "may gain rights"
    if "max-size" not in one.get("logging", {}).get("options", {}):
        yield "its log grows for ever"
    for port in one.get("ports", []):
        found = re.fullmatch(r"127\.0\.0\.1:\$\{(\w+)\}:\d+", port)
        if not found or found.group(1) not in variables:
            yield f"port {port}: not 127.0.0.1:${{VARIABLE of .env}}:number"
    for other, how in dict(one.get("depends_on", {})).items():
        wanted = "service_completed_successfully" if everything[other].get("restart") == "no" else "service_healthy"
        if how.get("condition") != wanted:
            yield f"does not wait until {other} is {wanted}"
    waits = [other for other in everything.values() if name in other.get("depends_on", {})]
    if is_job and not one.get("profiles") and not any(other.get("restart") != "no" for other in waits):
        yield "a job that nothing waits for: `up --wait` fails"
    if not is_job and "healthcheck" not in one:
        yield "no health check"
    if not is_job and "stop_grace_period" not in one:
        yield "no time to drain"
    if one["image"].startswith("brew/"):
        if one.get("read_only") is not True:
            yield "can write to its image"


def main():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    variables = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / ".env").read_text(), re.MULTILINE))
    services = compose["services"]
    complaints = [f"{name}: {text}" for name, one in services.items() for text in service(name, one, services, variables)]
    if "version" in compose:
        complaints.append("`version` is long gone")
    for variable in sorted(set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))):
        if variable not in variables:
            complaints.append(f"{variable} is not in .env")
    total = sum(megabytes(one["mem_limit"]) for one in services.values()
                if not one.get("profiles") and one.get("restart") != "no")
    if total > LIMIT_MB:
        complaints.append(f"what runs may take {total} MB")
    print(f"docker-compose.yml: {len(services)} services, {total} MB at most, {len(complaints)} complaint(s)")
    for text in complaints:
        print(text, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
