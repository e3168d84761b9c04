"""Links that are slower than comparable ones."""

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import network_ranks

slow_links = of_dicts(network_ranks.slow_links)


def link(**more):
    return {"rep": 0, "transport": "HCCS", "src_rank": 0, "dst_rank": 1, "rate": 1e9, "ratio": 0.5, "ratio_high": 0.6,
            "compared": 30, "local_group": "", **more}  # fmt: skip


def test_a_link_that_is_slower_in_most_moves_is_named():
    assert slow_links([link(), link(dst_rank=2, ratio=1.0, ratio_high=1.02)]) == [
        {"rep": 0, "transport": "HCCS", "src_rank": 0, "dst_rank": 1, "ratio": 0.5, "ratio_high": 0.6, "compared": 30, "rate": 1e9,
         "local_group": ""}
    ]  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"ratio_high": 0.9}, id="only in some moves"),
        pytest.param({"compared": 11}, id="too few moves"),
        pytest.param({"ratio": None, "ratio_high": None, "compared": 0}, id="nothing to compare with"),
    ],
)
def test_what_may_be_chance_is_not_named(more):
    assert slow_links([link(**more)]) == []


def test_the_slowest_comes_first():
    found = slow_links([link(ratio=0.7, ratio_high=0.75), link(src_rank=4, ratio=0.2)])
    assert [item["src_rank"] for item in found] == [4, 0]
