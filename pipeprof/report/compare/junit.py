"""A comparison as JUnit XML: one test case for the whole and one per metric."""

from __future__ import annotations

from typing import Any

from pipeprof.escape import xml as escape
from pipeprof.escape import xml_attribute as quoteattr
from pipeprof.report.compare import rows

CODES_OF_FAILURE = (1, 3)


def text(content: dict[str, Any]) -> str:
    """The XML. There is a failure if and only if the comparison as a whole failed or could not be judged.

    A metric that is worse without failing the comparison (a secondary one) passes, and its output says so.
    """
    failed = content["exit_code"] in CODES_OF_FAILURE
    whole = {"name": "comparison", "verdict": content["verdict"], "reason": content.get("headline") or ""}
    body = [_case(whole, "pipeprof", "", failed=failed)]
    for _, metrics in rows.families(content):
        body += [
            _case(one, f"pipeprof.{one.get('family') or 'other'}", _numbers(one), failed=failed) for one in metrics
        ]
    cases = "\n".join(body)
    counts = (
        f'tests="{len(body)}" failures="{cases.count("<failure ")}" errors="0" skipped="{cases.count("<skipped ")}"'
    )
    suite = quoteattr(rows.title(content).rpartition(": ")[0])
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites {counts}>\n<testsuite name={suite} {counts}>\n{cases}\n</testsuite>\n</testsuites>\n"
    )


def _case(one: dict[str, Any], group: str, numbers: str, *, failed: bool) -> str:
    verdict, reason = one["verdict"], rows.reason(one)
    message = quoteattr(reason if group == "pipeprof" and reason else ": ".join(filter(None, [verdict, reason])))
    if failed and (verdict in rows.FAILURES or group == "pipeprof"):
        inner = f"<failure type={quoteattr(verdict)} message={message}>{escape(numbers)}</failure>"
    elif verdict == "inconclusive":
        inner = f"<skipped message={message}/>"
    else:
        inner = f"<system-out>{escape(': '.join(filter(None, [verdict, numbers, reason])))}</system-out>"
    name = quoteattr(rows.clean(one["name"], rows.LONGEST_NAME))
    return f'<testcase classname={quoteattr(rows.clean(group, 60))} name={name} time="0">{inner}</testcase>'


def _numbers(metric: dict[str, Any]) -> str:
    _, base, new, change, _, repetitions = rows.cells(metric)
    return f"{base} -> {new}, {change}, repetitions {repetitions}"
