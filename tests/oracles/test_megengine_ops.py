"""`pipeprof ops` on MegEngine's profiles against profile_analyze's recorded output, command by command.

Profiles of the project's own are MegEngine's, recorded with it; those beside a checkout are more and larger ones.
"""

import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from captured import OUTSIDE, outside, own
from click.testing import CliRunner
from every import every
from megengine_table import cells_of, grids, operator_of, our_operator, plain, summary_of

from pipeprof.cli.ops import ops
from pipeprof.errors import PipeprofError, SourceError, UsageError

PUBLIC = OUTSIDE / "megengine"
CASES = [
    case | {"folder": folder}
    for folder in [own("megengine"), *outside("megengine")]
    for case in json.loads((folder / "oracle" / "manifest.json").read_text(encoding="utf-8"))
    if "--confluence" not in case["args"]  # a wiki's tables: a form of the original tool alone
]
DONE = [case for case in CASES if case["rc"] == 0]
FAILED = [case for case in CASES if case["rc"] != 0]
TITLES = {"device": "device self time", "host": "host self time"}
REFUSED = {
    "--order-by ++time": "unknown column",
    "--aggregate-by type": "--aggregate sum",
    "--opr-name [": "regular expression",
}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def name_of_profile(text):
    return Path(text).stem


def ask(case, args, *more):
    result = CliRunner().invoke(ops, [str(case["folder"] / case["profile"]), *args, *more])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


TEXT_FORMS = {"--dump-only-opr"}


def document(case):
    return _document(case["folder"], case["profile"], case["args"])


@cache
def _document(folder, profile, args):
    words = [word for word in args.split() if word not in TEXT_FORMS]
    return json.loads(ask({"folder": folder, "profile": profile}, words, "--format", "json"))


def name_of(case):
    return f"{name_of_profile(case['profile'])} {case['args']}"


def expected_of(case):
    return (case["folder"] / "oracle" / case["file"]).read_text(encoding="utf-8")


def sort_values(rows, args):
    """The value that each of our rows was ordered by."""
    words = args.split()
    column = words[words.index("--order-by") + 1].lstrip("+") if "--order-by" in words else "time"
    column = {"time": "self_ns"}.get(column, column)
    return [json.dumps(row[column]) for row in rows]


def tables(case):
    """Our tables: [(side, rows that are printed, all rows)]."""
    every = re.sub(r"-t -?[0-9]+", "", case["args"]).strip()
    found, whole = document(case), _document(case["folder"], case["profile"], f"{every} -t 0")
    first = "host" if "--print-only host" in case["args"] else "device"
    pairs = [(first, found["rows"], whole["rows"])]
    if "host_rows" in found:
        pairs.append(("host", found["host_rows"], whole["host_rows"]))
    return pairs


@every([case for case in DONE if "--dump-only-opr" not in case["args"]], name_of)
def test_the_summary_has_the_same_figures(case):
    printed = summary_of(expected_of(case))
    total = document(case)["total"]
    assert set(printed) <= {"total device time", "total host time"}
    for title, text in printed.items():
        value = total["device_ns" if "device" in title else "host_ns"]
        assert (text if text == "N/A" else f"{float(text):g}") == ("N/A" if value is None else f"{value / 1e9:g}")


PLAIN = [case for case in DONE if not TEXT_FORMS & set(case["args"].split())]


@every(PLAIN, name_of)
def test_the_table_has_the_same_rows_and_cells(case):
    printed = grids(expected_of(case))
    if "--print-only summary" in case["args"]:
        assert printed == []
        return
    ours = tables(case)
    assert [head[0] for head, _ in printed] == [TITLES[side] for side, _, _ in ours]
    for (head, expected), (_, shown, everything) in zip(printed, ours, strict=True):
        same_rows(case, head, expected, shown, everything)


def same_rows(case, head, expected, shown, everything):
    aggregated = "--aggregate" in case["args"].split()
    assert len(shown) == len(expected)
    ordered = sort_values(everything, case["args"])
    by_operator = defaultdict(list)
    for index, row in enumerate(everything):
        by_operator[our_operator(row, aggregated=aggregated)].append(index)
    running = 0.0
    for place, row in enumerate(expected):
        (index,) = by_operator[operator_of(row)]
        mine = everything[index]
        assert ordered[index] == ordered[place], "another operator at this place, and not for a tie"
        cells = cells_of(mine)
        assert [plain(cell) for cell in row[head[0]]] == [f"#{place}", *cells["time"]]
        running += mine["self_ns"]
        assert row["cumulative"] == [
            f"{running / 1e9:.3g}" if running else "0.0",
            f"{running / mine['side_ns'] * 100:.1f}%",
        ]
        for title in head[3:]:
            assert [plain(cell) for cell in row[title]] == cells[title], title


@every(PLAIN, name_of)
def test_our_own_running_sums_are_sums(case):
    for _, shown, _ in tables(case) if "summary" not in case["args"] else []:
        running = 0.0
        for place, row in enumerate(shown, 1):
            running += row["self_ns"]
            assert row["position"] == place
            assert row["cumulative_ns"] == pytest.approx(running, rel=1e-12)


@every([case for case in DONE if "--dump-only-opr" in case["args"]], name_of)
def test_names_of_operators_are_listed(case):
    assert ask(case, case["args"].split()) == expected_of(case)


@every(FAILED, name_of)
def test_what_the_original_crashes_on_is_answered(case):
    refusal = next((text for words, text in REFUSED.items() if case["args"].endswith(words)), None)
    if name_of_profile(case["profile"]) == "chrome_dict":
        with pytest.raises(SourceError, match="chrome timeline"):
            document(case)
    elif refusal is not None:
        with pytest.raises(UsageError) as caught:
            document(case)
        assert refusal in caught.value.message + caught.value.hint
    elif "--dump-only-opr" in case["args"]:
        assert ask(case, case["args"].split())
    else:
        found = document(case)
        assert (
            found["rows"]
            or "Int8" in case["args"]
            or "--print-only" in case["args"]
            or name_of_profile(case["profile"]) == "zero_device"
        )
        values = [row[sort_key(case)] for row in found["rows"]]
        known = [value for value in values if value is not None]
        assert values == known + [None] * (len(values) - len(known)), "N/A is last"
        up = case["args"].partition("--order-by ")[2].startswith(("+", "cumulative"))  # the last sum is the largest
        if all(isinstance(value, int | float) for value in known):
            assert known == sorted(known, reverse=not up)


def sort_key(case):
    column = case["args"].partition("--order-by ")[2].split(" ")[0].lstrip("+") or "time"
    return {"time": "self_ns", "cumulative": "self_ns", "info": "name"}.get(column, column)


TABLES = [  # profile, arguments, the table that was printed, and a summary that was printed elsewhere
    (own("megengine"), "gpu", "-t 5", own("megengine") / "oracle" / "gpu" / "001.txt", {}),
    *((PUBLIC, profile, args, PUBLIC / "published" / f"{table}_table.txt", summary) for profile, args, table, summary in (
        ("pub_seed000_a", "", "seed000_a", {}), ("pub_seed000_b", "-t 3 --opr-name conv*", "seed000_b", {}),
        ("pub_guide_top5", "-t 5", "guide_top5", {"total device time": "0.0118007", "total host time": "0.012106"}),
    ) if PUBLIC.is_dir()),
]  # fmt: skip


@pytest.mark.parametrize(("folder", "profile", "args", "path", "summary"), TABLES, ids=[table[1] for table in TABLES])
def test_published_tables_come_out(folder, profile, args, path, summary):
    text = path.read_text(encoding="utf-8")
    found = _document(folder, f"profiles/{profile}.json", args)
    (((_, expected)),) = (grids(text),)[0] if len(grids(text)) == 1 else pytest.fail("one table expected")
    for place, (mine, printed) in enumerate(zip(found["rows"], expected, strict=True)):
        cells = cells_of(mine)
        assert operator_of(printed) == our_operator(mine, aggregated=False)
        assert printed["device self time"] == [f"#{place}", *cells["time"]]
        assert printed["cumulative"] == [f"{mine['cumulative_ns'] / 1e9:.3g}", f"{mine['cumulative_share'] * 100:.1f}%"]
        assert all(printed[title] == cells[title] for title in cells if title != "time")
    for title, value in {**summary_of(text), **summary}.items():
        assert f"{found['total']['device_ns' if 'device' in title else 'host_ns'] / 1e9:g}" == value


def test_every_error_is_ours():
    assert issubclass(SourceError, PipeprofError)
