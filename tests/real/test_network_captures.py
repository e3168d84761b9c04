"""What the network diagnosis says of real recordings, see PROVENANCE.md."""

from pathlib import Path

import pytest
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question
from pipeprof.verdict import network

diagnose_network = of_dicts(network.diagnose_network)

NAMES = sorted(path.name for path in (Path(__file__).parent / "captures").iterdir())


@pytest.fixture(params=NAMES)
def diagnosed(request, converted):
    capture = converted(request.param)
    with Engine.open(capture.run) as engine:
        rows = {
            "phases": engine.rows("diagnose/network_phase"),
            "spread": engine.rows("diagnose/rank_imbalance"),
            "top": engine.rows("diagnose/network_top", top=10),
            "growth": engine.rows("diagnose/op_growth", top=50),
            "warmups": engine.rows("diagnose/warmup_share"),
            "comm": engine.rows("comm/summary"),
        }
    return request.param, rows, diagnose_network(**rows)


def test_the_parts_add_up_to_the_steps(diagnosed):
    _, rows, _ = diagnosed
    for row in rows["phases"]:
        mine = [other for other in rows["phases"] if (other["rep"], other["rank"]) == (row["rep"], row["rank"])]
        assert sum(other["total_ns"] for other in mine if other["adds_up"]) == row["step_ns"]
        assert row["kind"] == "train"


def test_collectives_of_the_cpu_block_and_are_exposed_behind_the_backward_pass(diagnosed):
    name, _, found = diagnosed
    talking = found["shares"]["communication_tail"] + found["shares"]["communication_exposed"]
    assert (talking > 0) is (name == "2.10-ranks")
    assert found["shares"]["communication_overlapped"] == 0


def test_tiny_networks_are_not_limited_by_their_operators(diagnosed):
    name, _, found = diagnosed
    limits = [limit for limit in found["candidates"] if limit != "compile"]
    assert limits[0] == ("communication" if name == "2.10-ranks" else "host_gap")


def test_no_rank_is_blamed_and_no_operator_grows(diagnosed):
    _, _, found = diagnosed
    assert found["slowest_rank"] is None
    assert not found["growing_ops"]


def test_the_operators_with_most_time_have_names_and_shares(diagnosed):
    _, _, found = diagnosed
    shares = [op["share"] for op in found["top_ops"]]
    assert shares == sorted(shares, reverse=True)
    assert all(op["name"] and 0 < op["share"] < 1 for op in found["top_ops"])


def test_work_of_single_operators_orders_them_without_a_filter(converted):
    content = answer(converted("2.10-graph").run, Question(order_by="FLOPS", top=0))
    speeds = [row["flops"] for row in content.parts[0].rows if row["flops"] is not None]
    assert content.kind == "single"
    assert len(speeds) > 2
    assert speeds == sorted(speeds, reverse=True)
    grouped = answer(converted("2.10-graph").run, Question(order_by="FLOPS", group_by="name"))
    amounts = [row["computation"] for row in grouped.parts[0].rows if row["computation"] is not None]
    assert len(amounts) > 2
    assert amounts == sorted(amounts, reverse=True)
