"""The probe's entry for a process that records itself. It runs in foreign processes too, so nothing there has types."""

from __future__ import annotations

from typing import Any

from pipeprof.collect.probe import inprocess

probe: Any = inprocess
