"""Which machine class and which environment a measurement is valid for, from the fingerprint of its run."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from typing import Any

import msgspec

# Facts that may differ between two jobs of one machine class.
SOFT_FIELDS = ("host", "kernel")
# Facts that make a machine class; the other hard ones (versions, variables) make the environment on it.
MACHINE_FIELDS = (
    "cpu_model", "cpu_cores", "cpu_affinity", "cpu_quota", "memory_bytes", "memory_limit_bytes", "architecture",
    "system", "device",
)  # fmt: skip
_NOISE = re.compile(r"\((r|tm|c)\)|\b(cpu|processor)\b|@.*", re.IGNORECASE)


def hard_fields(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that must be equal for two measurements to be comparable; what is not known (None) is left out.

    `memory_bytes` is rounded to whole GiB: the kernel keeps a little more or less for itself at each boot.
    """
    hard = {name: value for name, value in fingerprint.items() if name not in SOFT_FIELDS and value is not None}
    if isinstance(hard.get("memory_bytes"), (int, float)):
        hard["memory_bytes"] = round(hard["memory_bytes"] / 2**30) * 2**30
    return hard


def hard_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the hard facts in which two fingerprints differ, sorted."""
    left, right = hard_fields(one), hard_fields(other)
    return sorted(name for name in {*left, *right} if left.get(name) != right.get(name))


def fingerprint_hash(fingerprint: Mapping[str, Any]) -> str:
    """16 hexadecimal digits: equal for fingerprints without hard differences."""
    return _digest(hard_fields(fingerprint))[:16]


def host_name() -> str:
    """This host, as the fingerprint of a run names it: a hash, for names of hosts can be private."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def machine_class(fingerprint: Mapping[str, Any]) -> str:
    """A short name of the machine, safe as a folder name: `amd-epyc-2c-24g-cpu-5d0c1e9a`.

    CPU model, cores, memory in GiB, device (`any` when not known), and 8 digits of the hash of `MACHINE_FIELDS`.
    """
    facts = {name: value for name, value in hard_fields(fingerprint).items() if name in MACHINE_FIELDS}
    model = _slug(_NOISE.sub(" ", str(facts.get("cpu_model", "")))[:80])[:32].strip("-") or "unknown"
    cores = facts.get("cpu_cores", "x")
    memory = round(facts["memory_bytes"] / 2**30) if "memory_bytes" in facts else "x"
    device = _slug(str(facts.get("device", "any")))[:16].strip("-") or "any"
    return f"{model}-{cores}c-{memory}g-{device}-{_digest(facts)[:8]}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(dict(facts), order="deterministic")).hexdigest()
