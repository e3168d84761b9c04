"""The memory report: tables, JSON, and the lifetime chart."""

import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from pipeprof.cli.memory import memory
from pipeprof.errors import UsageError
from pipeprof.read.megengine.reader import read_memory_flow
from pipeprof.report.memory.svg import first_fit, svg
from pipeprof.report.memory.text import sparkline

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
TAG = "{https://megengine.org.cn}"


def block(op_id, address, size, produced, released):
    return {"op_id": op_id, "address": address, "bytes": size, "produced_ns": produced, "released_ns": released}


TABLES = {
    "step": [{"step": n, "kind_step": n, "kind": "train", "start_ns": n * MS, "end_ns": (n + 1) * MS} for n in range(40)],
    "memory": [
        {"t_ns": n * MS + 1, "device": "CPU", "name": "pool", "allocated_bytes": (5 << 20) + (n << 18)} for n in range(40)
    ],
    "op_info": [{"op_id": 0, "name": 'conv "<&>"', "type": "Conv2D"}],
    "allocation": [
        block(0, 1 << 40, 3 << 20, 0, 5 * MS), block(0, (1 << 40) + (3 << 20), 1 << 20, MS, None),
        block(None, 4096, 512, 2 * MS, 3 * MS + 7), block(0, None, 64, 0, 9),
    ],
}  # fmt: skip


@pytest.fixture
def ask(make_run):
    def answer(*options, tables=TABLES):
        run = make_run(tables)
        run.manifest.state = "complete"
        run.save()
        return CliRunner().invoke(memory, [str(run.path), *options], catch_exceptions=False)

    return answer


def test_the_terminal_says_what_grows_and_what_was_alive(ask):
    text = ask().stdout
    assert text.startswith("Memory grows from step to step: a leak")
    assert "grew by 256 KiB per step" in text
    assert "4.00 MiB" in text
    assert 'conv "<&>"' in text
    assert "(unknown)" in text


def test_json_has_every_part(ask):
    content = json.loads(ask("--format", "json").stdout)
    assert content["schema_version"] == 1
    assert content["growth_verdict"] == "growing"
    assert [row["verdict"] for row in content["growth"]] == ["growing"]
    assert [(curve["source"], len(curve["points"])) for curve in content["curves"]] == [
        ("samples", 40),
        ("lifetimes", 5),
    ]
    assert content["peaks"][0]["peak_bytes"] == (4 << 20) + 512
    assert [row["bytes"] for row in content["alive_at_peak"]] == [4 << 20, 512]
    assert [row["bytes"] for row in content["lifetimes"]] == [3 << 20, 1 << 20, 512, 64]
    assert content["not_measured"] == []


def test_a_level_that_swings_is_shown_as_it_began_and_ended(ask):
    swings = [
        {"t_ns": n, "device": "CPU", "name": "pool", "allocated_bytes": (8, 1, 9, 2)[n % 4] << 20} for n in range(4000)
    ]
    line = next(line for line in ask(tables={"memory": swings}).stdout.splitlines() if "CPU pool" in line)
    assert line.split()[2:8] == ["8.00", "MiB", "9.00", "MiB", "2.00", "MiB"]


@pytest.mark.parametrize(
    ("level", "title"),
    [
        (lambda n: 100_000 + 10 * n + 40_000 * (n >= 20), "most of the growth is one jump"),
        (lambda n: 100_000 + 1000 * (n * 7919 % 31), "it varies too much"),
        (lambda n: 100_000 if n < 3 else None, "Too few samples to detect a leak"),
    ],
)
def test_why_a_leak_is_not_told_is_in_the_first_line(ask, level, title):
    rows = [
        {"t_ns": n * MS + 1, "device": "CPU", "name": "pool", "allocated_bytes": level(n) and level(n) << 10}
        for n in range(40)
    ]
    assert title in ask(tables={"step": TABLES["step"], "memory": rows}).stdout.splitlines()[0]


def test_of_several_devices_the_fullest_is_shown_and_named(ask):
    blocks = [{**row, "device": "CUDA:0" if row["address"] == 4096 else "CUDA:1"} for row in TABLES["allocation"]]
    tables = TABLES | {"allocation": blocks}
    text = ask(tables=tables).stdout
    assert "peak and blocks are those of the device that held the most: CUDA:1" in " ".join(text.split())
    assert "CUDA:1 lifetimes of blocks" in text
    assert json.loads(ask("--format", "json", tables=tables).stdout)["peaks"][0]["devices"] == 2


def test_ranks_are_told_apart_where_only_operators_have_memory(ask):
    op = {"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": 1, "self_memory_bytes": 1 << 20}
    ranks = (0, 1)
    tables = {
        "op": [op | {"rank": rank} for rank in ranks],
        "op_info": [{"rank": rank, "op_id": 0, "name": "conv"} for rank in ranks],
    }
    text = ask(tables=tables).stdout
    assert [line.split()[:2] for line in text.splitlines() if "conv" in line] == [["0/0", "conv"], ["0/1", "conv"]]


def test_an_empty_run_says_what_was_not_measured(ask):
    answer = ask(tables={})
    assert "Not measured: whether memory grows from step to step" in answer.stdout
    assert answer.stdout.count("not measured: ") == 4


def test_the_chart_is_xml_with_time_and_address(ask, tmp_path):
    ask("--svg", str(tmp_path / "m.svg"))
    root = ET.parse(tmp_path / "m.svg").getroot()  # noqa: S314 - our own file
    blocks = [rect for rect in root.iter(f"{SVG}rect") if rect.get(f"{TAG}type") == "tensor"]
    assert len(blocks) == 3
    assert "not drawn, without an address: 1" in (tmp_path / "m.svg").read_text()
    large, held, small = (
        next(rect for rect in blocks if rect.get(f"{TAG}size") == size) for size in ("3MB ", "1MB ", "512B ")
    )
    assert large.get(f"{TAG}name") == 'conv "<&>"'
    assert float(large.get("height")) == pytest.approx(3 * float(held.get("height")), rel=0.01)
    assert float(held.get("y")) < float(large.get("y")) < float(small.get("y"))
    assert held.get(f"{TAG}erased") is None
    assert float(large.get("x")) < float(held.get("x"))
    assert max(float(rect.get("y")) for rect in blocks) < 600


def test_the_reader_of_the_same_format_finds_the_blocks_again(ask, tmp_path):
    ask("--svg", str(tmp_path / "m.svg"))
    rows = read_memory_flow(tmp_path / "m.svg").tables.rows
    names = {row[0]: row[1] for row in rows["op_info"]}
    found = sorted((*row[1:4], names.get(row[4])) for row in rows["allocation"])
    name = 'conv "<&>"'
    assert found == [(512, 2 * MS, 3 * MS + 7, None), (1 << 20, MS, None, name), (3 << 20, 0, 5 * MS, name)]


def test_no_block_is_no_chart():
    with pytest.raises(UsageError, match="no blocks whose lifetimes are known"):
        svg([], None, "rank 0")


def test_blocks_without_addresses_are_placed_by_first_fit(ask, tmp_path):
    rows = [block(0, None, 8, 0, 10), block(0, None, 4, 1, 5), block(0, None, 2, 2, None), block(0, None, 4, 6, 7)]
    assert [row["address"] for row in first_fit(rows)] == [0, 8, 12, 8]
    done = ask("--svg", str(tmp_path / "m.svg"), tables={"allocation": [row | {"evidence": "matched"} for row in rows]})
    drawn = (tmp_path / "m.svg").read_text()
    assert "placed by first fit" in drawn
    assert "tag:address" not in drawn
    sentence = "Lifetimes are reconstructed from the changes of MindSpore's pool, by size"
    assert sentence in drawn
    assert sentence in done.stdout
    assert sentence not in ask().stdout


def test_chosen_rank_is_drawn(ask, tmp_path):
    other = [row | {"rank": 3} for row in TABLES["allocation"][:1]]
    ask("--svg", str(tmp_path / "m.svg"), "--rank", "3", tables={"allocation": TABLES["allocation"] + other})
    assert "rank 3: 1 block<" in (tmp_path / "m.svg").read_text()


def test_the_chart_says_of_how_many_blocks_it_draws_the_largest(ask, tmp_path):
    ask("--svg", str(tmp_path / "m.svg"), "--blocks", "2")
    assert "rank 0: the 2 largest of 4 blocks<" in (tmp_path / "m.svg").read_text()


def test_sparkline_keeps_the_largest_of_what_shares_a_bar():
    assert sparkline([0, 1, 8, 4], width=2) == "▂█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
