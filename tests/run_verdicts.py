"""Gives hand-made content of a report the verdict on the run, as a stored run gets it."""

from __future__ import annotations

from typing import Any

import msgspec
from typed_rows import rows

from pipeprof.query.rows import RunAccount
from pipeprof.report.answer import Answer, answer_of
from pipeprof.verdict.hang import has_failed
from pipeprof.verdict.ranking import rank
from pipeprof.verdict.run_account import training_share

NO_ACCOUNT = {"parts": [], "large": [], "leading": None, "slower": None}


def with_verdict(content: dict[str, Any]) -> dict[str, Any]:
    """The content with `verdict`, by the diagnosis, the account of the run and the ranks that it holds."""
    ranks, run = content.get("ranks") or {}, content["run"]
    account = content.get("run_account") or NO_ACCOUNT
    verdict = rank(
        content["diagnosis"],
        account,
        training=training_share(rows(RunAccount, account["parts"])),
        straggler=ranks.get("straggler"),
        replay=ranks.get("causes"),
        failed=has_failed(run["state"], [rep["exit_code"] for rep in run["reps"]]),
    )
    return content | {"verdict": msgspec.to_builtins(verdict)}


def answered(content: dict[str, Any]) -> Answer:
    """What a report of such content opens with."""
    return answer_of(with_verdict(content))
