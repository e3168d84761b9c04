from pipeprof.verdict.gate.policy import GIB, differences

BASE = {"cpu_model": "A", "memory_bytes": 16 * GIB, "host": "x", "environment": {"OMP_NUM_THREADS": "2"}}


def test_the_same_conditions_have_no_differences():
    assert differences(BASE, dict(BASE)) == []


def test_another_processor_is_hard_and_another_host_is_not():
    found = differences(BASE, {**BASE, "cpu_model": "B", "host": "y"})
    assert found == [
        {"name": "cpu_model", "base": "A", "new": "B", "hard": True},
        {"name": "host", "base": "x", "new": "y", "hard": False},
    ]


def test_memory_counts_in_whole_gib():
    assert differences(BASE, {**BASE, "memory_bytes": 16 * GIB + 4096}) == []
    (found,) = differences(BASE, {**BASE, "memory_bytes": 8 * GIB})
    assert (found["name"], found["base"], found["new"]) == ("memory_gib", 16, 8)


def test_each_variable_differs_by_its_own_name():
    (found,) = differences(BASE, {**BASE, "environment": {"OMP_NUM_THREADS": "2", "LD_PRELOAD": "jemalloc"}})
    assert (found["name"], found["base"], found["hard"]) == ("environment.LD_PRELOAD", None, True)


def test_what_one_side_does_not_know_differs():
    (found,) = differences(BASE, {**BASE, "mindspore": "2.10.0"})
    assert found["hard"]


def test_ignored_fields_are_soft():
    found = differences(BASE, {**BASE, "cpu_model": "B", "environment": {}}, ignored=("cpu_model", "environment"))
    assert [entry["hard"] for entry in found] == [False, False]
