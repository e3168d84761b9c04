"""One issue for each alert of `pipeprof history --alerts`: opened, brought up to date, and closed once it is settled.

    alerts.py told FILE           writes the marks of the issues that are there into FILE, for `pipeprof history --told`
    alerts.py tell JSON...        opens, changes and closes issues as the alerts in these files are

Runs on the default branch's code, after its measurements. Only issues that the bot itself opened are read or touched.
An issue that a person closed stays closed. With PIPEPROF_DRY_RUN it says what it would do. Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import urllib.error
from pathlib import Path
from typing import Any

LABEL = "pipeprof-alert"
MARK = re.compile(r"<!-- pipeprof-alert:([A-Za-z0-9._-]+)(?: [0-9A-Za-z:+.-]+)* -->")
STATES = ("new", "acknowledged", "fixed", "wrong")
MOST_PAGES, MOST_NEW, MOST_TITLE, MOST_BODY = 30, 10, 250, 60_000
SCHEMA_VERSION = 1


def beside() -> Any:
    """The companion `comment.py`, which knows how GitHub is asked."""
    source = Path(__file__).resolve().with_name("comment.py")
    spec = importlib.util.spec_from_file_location("pipeprof_gate_comment", source)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {source}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMENT = beside()


def issues(api: Any, login: str) -> dict[str, dict[str, Any]]:
    """The bot's issue of each alert, open or closed; of two the first one."""
    found: dict[str, dict[str, Any]] = {}
    for page in range(1, MOST_PAGES + 1):
        listed = api.ask(f"issues?labels={LABEL}&state=all&sort=created&direction=asc&per_page=100&page={page}")
        for issue in listed:
            mark = MARK.match(str(issue.get("body")))
            if mark and (issue.get("user") or {}).get("login") == login and "pull_request" not in issue:
                found.setdefault(mark[1], issue)
        if len(listed) < 100:
            return found
    raise COMMENT.Refused(f"more than {MOST_PAGES * 100} issues with the label {LABEL}")


def alerts_in(path: Path) -> list[dict[str, Any]]:
    """The alerts of a file. Raises Refused when it is none of this version."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION or "alerts" not in content:
        raise COMMENT.Refused(f"{path.name} holds no alerts that this version reads")
    for one in content["alerts"]:
        mark = MARK.match(str(one["body"]))
        if one["state"] not in STATES or mark is None or mark[1] != one["name"]:
            raise COMMENT.Refused(f"{path.name} holds an alert that this version cannot read")
    return list(content["alerts"])


def wanted(one: dict[str, Any], issue: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """What is to be done, and the body of the request: "open", "change", "close" or nothing."""
    text = {"title": one["title"][:MOST_TITLE], "body": one["body"][:MOST_BODY]}
    if issue is None:
        return ("open", text | {"labels": [LABEL]}) if one["state"] == "new" else ("", {})
    if issue.get("state") != "open":
        return "", {}
    if one["state"] != "new":
        reason = "completed" if one["state"] == "fixed" else "not_planned"
        return "close", text | {"state": "closed", "state_reason": reason}
    same = str(issue["body"]).replace("\r\n", "\n").strip() == text["body"].strip() and issue["title"] == text["title"]
    return ("", {}) if same else ("change", text)


def tell(api: Any, paths: list[Path], login: str, *, dry: bool) -> list[str]:
    """Does what is to be done; a line for each alert."""
    alerts = [one for path in paths for one in alerts_in(path)]
    known, said, opened = issues(api, login), [], 0
    for one in alerts:
        issue = known.get(one["name"])
        what, body = wanted(one, issue)
        opened += what == "open"
        if opened > MOST_NEW and what == "open":
            raise COMMENT.Refused(f"more than {MOST_NEW} new alerts at once: look at the history first")
        if what and not dry:
            if issue is None:
                api.ask("issues", "POST", body)
            else:
                api.ask(f"issues/{int(issue['number'])}", "PATCH", body)
        number = f" #{int(issue['number'])}" if issue else ""
        said.append(f"{one['name']} ({one['state']}): {'would ' if dry and what else ''}{what or 'leave'}{number}")
    return said


def main(words: list[str]) -> int:
    """The exit code: 0 when each issue is as it should be."""
    env = dict(os.environ)
    login = env.get("PIPEPROF_BOT_LOGIN", "github-actions[bot]")
    try:
        api = COMMENT.Api(env)
        if words[:1] == ["told"] and len(words) == 2:
            marks = [str(issue["body"]).partition("\n")[0] for issue in issues(api, login).values()]
            Path(words[1]).write_text("".join(f"{mark.strip()}\n" for mark in marks), encoding="utf-8")
            return int(COMMENT.told(f"{len(marks)} alerts were told before", 0))
        if words[:1] == ["tell"] and len(words) > 1:
            lines = tell(api, [Path(word) for word in words[1:]], login, dry=bool(env.get("PIPEPROF_DRY_RUN")))
            return max([int(COMMENT.told(line, 0)) for line in lines or ["no alerts"]])
        return int(COMMENT.told("expected `told FILE` or `tell JSON...`", 2))
    except COMMENT.Refused as refused:
        return int(COMMENT.told(refused.message, 1))
    except urllib.error.HTTPError as error:
        return int(COMMENT.told(f"GitHub answered {error.code} to {error.url}", 1))
    except COMMENT.UNEXPECTED as error:
        return int(COMMENT.told(f"unexpected error: {type(error).__name__}", 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
