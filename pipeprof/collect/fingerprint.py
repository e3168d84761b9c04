"""What machine and environment a run is valid for. An allow-list decides which environment variables are kept."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from pathlib import Path
from typing import Any

import psutil

from pipeprof.collect.probe.redact import redacted, redacted_variable
from pipeprof.record.git import git_or_none
from pipeprof.record.machine import host_name
from pipeprof.record.text import printable_all

KEPT_VARIABLES = (
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
    "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "MALLOC_ARENA_MAX", "LD_PRELOAD", "PYTHONHASHSEED", "PYTHONOPTIMIZE",
    "DEVICE_ID", "RANK_ID", "RANK_SIZE", "MS_WORKER_NUM", "MS_ROLE", "DEVICE_TARGET", "CUDA_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "GLOG_v", "VLOG_v", "MS_BUILD_PROCESS_NUM",
    "MS_DEV_RUNTIME_CONF", "MS_ALLOC_CONF", "MS_ENABLE_NUMA", "MS_JIT", "MS_JIT_MODULES", "MS_PROFILER_OPTIONS",
    "MS_COMPILER_CACHE_ENABLE", "MS_DEV_GRAPH_KERNEL_FLAGS", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC", "NCCL_DEBUG",
    "FP_POINT", "BP_POINT", "PROFILING_FP_START", "PROFILING_BP_END", "PROFILING_ITER_END",
)  # fmt: skip
CI_JOBS = (
    ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB", "RUNNER_NAME"),
    ("CI_JOB_ID",),  # GitLab
    ("BUILD_TAG",),  # Jenkins
    ("BUILDKITE_JOB_ID",),
)

_PIECES, _ROUNDS = 40, 5_000  # of the calibration loop: together 10 to 30 ms
_GIT_S = 5  # a training does not wait longer for it


def machine() -> dict[str, Any]:
    """CPU model, cores and quota, memory, system, container, kept environment variables; every text is UTF-8."""
    facts = {
        "cpu_model": _cpu_model(),
        "cpu_cores": os.cpu_count(),
        "cpu_affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cpu_quota": _cgroup_quota(),
        "memory_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": _cgroup_number("memory.max", "memory/memory.limit_in_bytes"),
        "architecture": platform.machine(),
        "system": platform.system(),
        "kernel": platform.release(),
        "os": _os_name(),
        "container": _container(),
        "host": host_name(),
        "environment": {
            name: redacted_variable(name, os.environ[name]) for name in KEPT_VARIABLES if name in os.environ
        },
    }
    return dict(printable_all(facts))


def calibration_ns() -> int:
    """CPU time of a fixed loop of Python on this machine in ns: the fastest of its pieces, as other work slows most."""
    times = []
    for _ in range(_PIECES):
        began, total = time.thread_time_ns(), 0
        for each in range(_ROUNDS):
            total += each * 3 % 7
        times.append(time.thread_time_ns() - began)
    return min(times)


def job() -> str | None:
    """This CI job, or this host since it was started; None when neither can be told.

    Repetitions of one job can be compared; between jobs the machine itself may be another one.
    """
    for names in CI_JOBS:
        values = [os.environ.get(name, "") for name in names]
        if values[0]:
            return "ci:" + hashlib.sha256(" ".join(values).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    boot = next(iter(_lines("/proc/sys/kernel/random/boot_id")), None)
    if boot is None:
        return None
    return "boot:" + hashlib.sha256(f"{platform.node()} {boot}".encode()).hexdigest()[:12]


def git_state(folder: Path) -> dict[str, Any] | None:
    """Revision and whether the tree was changed; None outside a repository, without git, and when it takes too long."""
    revision = git_or_none(folder, "rev-parse", "HEAD", most_s=_GIT_S)
    if revision is None:
        return None
    changed = git_or_none(folder, "status", "--porcelain", "--untracked-files=no", most_s=_GIT_S)
    return {"revision": revision, "dirty": bool(changed) if changed is not None else None}


def _cpu_model() -> str | None:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith(("model name", "Hardware", "cpu model")):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def _os_name() -> str | None:
    for line in _lines("/etc/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return platform.platform()


def _cgroup_quota() -> float | None:
    """Cores that the control group allows; None when it sets no limit."""
    for line in _lines("/sys/fs/cgroup/cpu.max"):
        quota, _, period = line.partition(" ")
        return int(quota) / int(period) if quota.isdigit() and period.strip().isdigit() else None
    quota_us, period_us = (_cgroup_number("", f"cpu/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return quota_us / period_us if quota_us and period_us and quota_us > 0 else None


def _cgroup_number(second: str, first: str) -> int | None:
    for name in filter(None, (second, first)):
        for line in _lines(f"/sys/fs/cgroup/{name}"):
            return int(line) if line.strip().isdigit() and int(line) < 1 << 60 else None
    return None


def _container() -> str | None:
    """Container image digest if the environment says it, else `container` when we are in one."""
    for name in ("CONTAINER_IMAGE_DIGEST", "IMAGE_DIGEST", "CI_JOB_IMAGE"):
        if os.environ.get(name):
            return redacted(os.environ[name])
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "container"
    return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
