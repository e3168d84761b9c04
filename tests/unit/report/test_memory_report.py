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
from tests.unit.report.conftest import MS, trained

SVG = "{http://www.w3.org/2000/svg}"
TAG = "{https://megengine.org.cn}"
MIB = 1 << 20
NAME = 'conv "<&>"'


def block(op_id, address, size, produced, released):
    return {"op_id": op_id, "address": address, "bytes": size, "produced_ns": produced, "released_ns": released}


def levels(level, count=40, every=MS):
    pool = {"device": "CPU", "name": "pool"}
    return [pool | {"t_ns": n * every + 1, "allocated_bytes": level(n)} for n in range(count)]


TABLES = {
    "step": trained(*[MS] * 40),
    "memory": levels(lambda n: 5 * MIB + (n << 18)),
    "op_info": [{"op_id": 0, "name": NAME, "type": "Conv2D"}],
    "allocation": [
        block(0, 1 << 40, 3 << 20, 0, 5 * MS), block(0, (1 << 40) + (3 << 20), 1 << 20, MS, None),
        block(None, 4096, 512, 2 * MS, 3 * MS + 7), block(0, None, 64, 0, 9),
    ],
}  # fmt: skip


@pytest.fixture
def ask(make_run):
    """`ask(options)`: what `memory` says of a run with these tables."""

    def answer(*options, **tables):
        run = make_run(tables or TABLES, state="complete")
        return CliRunner().invoke(memory, [str(run.path), *map(str, options)], catch_exceptions=False)

    return answer


@pytest.fixture
def drawn(ask, tmp_path):
    """`drawn(options)`: the chart, as text."""

    def text(*options, **tables):
        ask("--svg", tmp_path / "m.svg", *options, **tables)
        return (tmp_path / "m.svg").read_text()

    return text


def test_the_terminal_says_what_grows_and_what_was_alive(ask):
    text = ask().stdout
    assert text.startswith("Memory grows from step to step: a leak")
    for said in ("grew by 256 KiB per step", "4.00 MiB", NAME, "(unknown)"):
        assert said in text


def test_json_has_every_part(ask):
    content = json.loads(ask("--format", "json").stdout)
    assert (content["schema_version"], content["growth_verdict"], content["not_measured"]) == (1, "growing", [])
    assert [row["verdict"] for row in content["growth"]] == ["growing"]
    curves = [(curve["source"], len(curve["points"])) for curve in content["curves"]]
    assert curves == [("samples", 40), ("lifetimes", 5)]
    assert content["peaks"][0]["peak_bytes"] == 4 * MIB + 512
    assert [row["bytes"] for row in content["alive_at_peak"]] == [4 << 20, 512]
    assert [row["bytes"] for row in content["lifetimes"]] == [3 << 20, 1 << 20, 512, 64]


def test_a_level_that_swings_is_shown_as_it_began_and_ended(ask):
    text = ask(memory=levels(lambda n: (8, 1, 9, 2)[n % 4] << 20, 4000, 1)).stdout
    line = next(line for line in text.splitlines() if "CPU pool" in line)
    assert line.split()[2:8] == ["8.00", "MiB", "9.00", "MiB", "2.00", "MiB"]


@pytest.mark.parametrize(("level", "title"), [
    (lambda n: 100_000 + 10 * n + 40_000 * (n >= 20) << 10, "most of the growth is one jump"),
    (lambda n: 100_000 + 1000 * (n * 7919 % 31) << 10, "it varies too much"),
    (lambda n: 100_000 << 10 if n < 3 else None, "Too few samples to detect a leak"),
])  # fmt: skip
def test_why_a_leak_is_not_told_is_in_the_first_line(ask, level, title):
    assert title in ask(step=TABLES["step"], memory=levels(level)).stdout.splitlines()[0]


def test_of_several_devices_the_fullest_is_shown_and_named(ask):
    blocks = [{**row, "device": "CUDA:0" if row["address"] == 4096 else "CUDA:1"} for row in TABLES["allocation"]]
    tables = TABLES | {"allocation": blocks}
    text = ask(**tables).stdout
    assert "peak and blocks are those of the device that held the most: CUDA:1" in " ".join(text.split())
    assert "CUDA:1 lifetimes of blocks" in text
    assert json.loads(ask("--format", "json", **tables).stdout)["peaks"][0]["devices"] == 2


def test_ranks_are_told_apart_where_only_operators_have_memory(ask):
    op = {"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": 1, "self_memory_bytes": 1 << 20}
    infos = [{"rank": rank, "op_id": 0, "name": "conv"} for rank in (0, 1)]
    text = ask(op=[op | {"rank": rank} for rank in (0, 1)], op_info=infos).stdout
    assert [line.split()[:2] for line in text.splitlines() if "conv" in line] == [["0/0", "conv"], ["0/1", "conv"]]


def test_an_empty_run_says_what_was_not_measured(ask):
    text = ask(step=[]).stdout
    assert "Not measured: whether memory grows from step to step" in text
    assert text.count("not measured: ") == 4


def test_the_chart_is_xml_with_time_and_address(drawn):
    text = drawn()
    assert "not drawn, without an address: 1" in text
    rects = ET.fromstring(text).iter(f"{SVG}rect")  # noqa: S314 - our own file
    blocks = {rect.get(f"{TAG}size"): rect for rect in rects if rect.get(f"{TAG}type") == "tensor"}
    assert sorted(blocks) == ["1MB ", "3MB ", "512B "]
    large, held, small = (blocks[size] for size in ("3MB ", "1MB ", "512B "))
    assert (large.get(f"{TAG}name"), held.get(f"{TAG}erased")) == (NAME, None)
    assert float(large.get("height")) == pytest.approx(3 * float(held.get("height")), rel=0.01)
    assert float(held.get("y")) < float(large.get("y")) < float(small.get("y")) < 600
    assert float(large.get("x")) < float(held.get("x"))


def test_the_reader_of_the_same_format_finds_the_blocks_again(drawn, tmp_path):
    drawn()
    rows = read_memory_flow(tmp_path / "m.svg").tables.rows
    names = {row[0]: row[1] for row in rows["op_info"]}
    found = sorted((*row[1:4], names.get(row[4])) for row in rows["allocation"])
    assert found == [(512, 2 * MS, 3 * MS + 7, None), (1 << 20, MS, None, NAME), (3 << 20, 0, 5 * MS, NAME)]


def test_no_block_is_no_chart():
    with pytest.raises(UsageError, match="no blocks whose lifetimes are known"):
        svg([], None, "rank 0")


def test_blocks_without_addresses_are_placed_by_first_fit(ask, drawn):
    rows = [block(0, None, 8, 0, 10), block(0, None, 4, 1, 5), block(0, None, 2, 2, None), block(0, None, 4, 6, 7)]
    assert [row["address"] for row in first_fit(rows)] == [0, 8, 12, 8]
    matched = [row | {"evidence": "matched"} for row in rows]
    text = drawn(allocation=matched)
    assert "placed by first fit" in text
    assert "tag:address" not in text
    sentence = "Lifetimes are reconstructed from the changes of MindSpore's pool, by size"
    assert [sentence in one for one in (text, ask(allocation=matched).stdout, ask().stdout)] == [True, True, False]


def test_chosen_rank_is_drawn_and_of_how_many_blocks_the_largest(drawn):
    other = [row | {"rank": 3} for row in TABLES["allocation"][:1]]
    assert "rank 3: 1 block<" in drawn("--rank", "3", allocation=TABLES["allocation"] + other)
    assert "rank 0: the 2 largest of 4 blocks<" in drawn("--force", "--blocks", "2")


def test_sparkline_keeps_the_largest_of_what_shares_a_bar():
    assert [sparkline([0, 1, 8, 4], width=2), sparkline([0, 0]), sparkline([])] == ["▂█", "▁▁", ""]
