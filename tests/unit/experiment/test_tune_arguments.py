"""The argument of the user's own call is found over the functions that hand it on, a library's or the user's."""

import pytest

from pipeprof.experiment.tune import arguments
from pipeprof.experiment.tune.arguments import set_together
from pipeprof.experiment.tune.patch import patch_of
from pipeprof.record.settings_file import OperatorSetting, Settings

LOADER = """
def create_loader(rows, size, *, workers=None, processes=False):
    rows = rows.map(cast, num_parallel_workers=workers)
    rows = rows.map(cut, num_parallel_workers=workers, python_multiprocessing=processes)
    return rows.batch(size)
"""
CALL = "create_loader(rows, 16)"
HAND_ON = "return rows.map(f, num_parallel_workers=n)"
TWO, BOTH = {"workers": 2}, {"workers": 2, "processes": True}
LEADS = "num_parallel_workers=2 in the call that leads to"


def function(head, *body):
    """The text of a function or class, whose lines are indented one after the other where they begin with `>`."""
    lines = [f"    {'    ' * (len(line) - len(line.lstrip('>')))}{line.lstrip('>')}\n" for line in body]
    return f"{head}:\n{''.join(lines)}"


@pytest.fixture
def job(tmp_path):
    """A library that is installed beside the user's project, and the project; returns what patches train.py."""

    def run(
        call, library=LOADER, line=4, *, beside=None, also=False, between=None, beside_between=None, outer=(), **setting
    ):
        """`beside`: the line of another map; `also`: it is to be set, too. `between`: a line of the library's."""
        packages, project = tmp_path / "lib" / "site-packages", tmp_path / "project"
        for folder in (packages, project):
            folder.mkdir(parents=True, exist_ok=True)
        loader, train = packages / "loader.py", project / "train.py"
        loader.write_text(library)
        train.write_text(f"from loader import create_loader\n\ndata = {call}\n")
        lines = {1: line} | ({2: beside} if beside else {})
        led = {1: between, 2: beside_between or between}
        own = [f"{train}:{at}" for at in (3, *outer)]
        callers = {node: [*([f"{loader}:{led[node]}"] if led[node] else []), *own] for node in lines}
        places = {node: f"{loader}:{at}" for node, at in lines.items()}
        rows = [
            {"node": node, "op_type": "MapOp", "site": place, "callers": "\n".join(callers[node])}
            for node, place in places.items()
        ]
        wanted = [
            OperatorSetting(node=node, op_type="MapOp", place=place, **(setting or TWO))
            for node, place in places.items()
            if node == 1 or also
        ]
        return patch_of(Settings(operators=tuple(wanted)), project, {f"{train}:3"}, rows)

    return run


def added(patch):
    """What the line of the call becomes."""
    assert patch.by_hand == ()
    assert [place.rpartition("/")[2] for place in patch.shared] == ["train.py:3"]
    return next(line[8:] for line in patch.diff.splitlines() if line.startswith("+data = "))


def left(patch):
    """What is to be done at the user's line instead, and why."""
    assert patch.diff == ""
    assert {one.place.rpartition("/")[2] for one in patch.by_hand} == {"train.py:3"}
    return [(one.what, one.why) for one in patch.by_hand]


@pytest.mark.parametrize(
    ("before", "setting", "after"),
    [
        (CALL, TWO, "create_loader(rows, 16, workers=2)"),
        ("create_loader(rows, 16, workers=1)", TWO, "create_loader(rows, 16, workers=2)"),
        ("loader.create_loader(rows, 16)", TWO, "loader.create_loader(rows, 16, workers=2)"),
        ("create_loader(rows, workers=1, **options)", TWO, "create_loader(rows, workers=2, **options)"),
        ("create_loader(rows, 16, workers=1)", BOTH, "create_loader(rows, 16, workers=2, processes=True)"),
    ],
)
def test_the_argument_of_the_users_call_is_edited(job, before, setting, after):
    assert added(job(before, **setting)) == after


OF_CLASS = "class Loader:\n    {}def rows({}, rows, n):\n        " + HAND_ON + "\n"
KEPT = ("class Loader", "def __init__(self, rows, n=1):", ">self.rows = rows.map(f, num_parallel_workers=n)")
STATIC = ("class Loader", "@staticmethod", "def rows(rows, n):", f">{HAND_ON}")
MAKE = "def make(rows, n=1)"
CALLED = ("def call(*args, **more):", ">return function(*args, **more)", "return call")
TIMED = function("def timed(function)", *CALLED) + "@timed\n"
TOLD, CORES = "print(f'{n} workers', n)", "return rows.map(g, num_parallel_workers=min(CORES // 2, 4))"


@pytest.mark.parametrize(
    ("library", "line", "more", "before", "after"),
    [
        (function("def create_loader(rows, n)", HAND_ON), 2, {}, "create_loader(rows, 1)", "create_loader(rows, 2)"),
        (function(*KEPT), 3, {}, "Loader(rows, 1)", "Loader(rows, 2)"),
        (OF_CLASS.format("", "self").replace(", n)", ", n=1)"), 3, {}, "Loader().rows(1)", "Loader().rows(1, n=2)"),
        (function(*STATIC), 4, {}, "Loader.rows(2, 1)", "Loader.rows(2, 2)"),
        (OF_CLASS.format("@classmethod\n    ", "cls"), 4, {}, "Loader.rows(2, 4)", "Loader.rows(2, 2)"),
        (OF_CLASS.format("", "self"), 3, {}, "Loader().rows(2, 4)", "Loader().rows(2, 2)"),
        # several functions, and a decorator
        (function("def inner(rows, n)", HAND_ON) + function("def outer(rows, m=1)", "return inner(rows, n=m)"),
         2, {"between": 4}, "outer(rows)", "outer(rows, m=2)"),
        (TIMED + function("def outer(rows, n=1)", HAND_ON), 7, {"between": 3}, "outer(rows)", "outer(rows, n=2)"),
        # it is also told, or stands beside a value that needs no argument
        (function(MAKE, TOLD, HAND_ON), 3, {}, "make(rows)", "make(rows, n=2)"),
        ("CORES = 8\n" + function(MAKE, HAND_ON.replace("return", "rows ="), CORES), 3, {"beside": 4},
         "make(rows)", "make(rows, n=2)"),
        # what a library writes out as it is wanted needs no change: a source in threads is to stay so, as mindone's
        (function(MAKE, HAND_ON.replace("=n)", "=n, python_multiprocessing=False)")), 2, TWO | {"processes": False},
         "make(rows)", "make(rows, n=2)"),
    ],
)  # fmt: skip
def test_functions_of_every_form_hand_it_on(job, library, line, more, before, after):
    assert added(job(before, library, line, **more)) == after


def test_a_function_of_the_same_name_that_gives_a_value_of_its_own_is_not_passed_over(job):
    """A registry: what the user calls does not set the operator."""
    outer = function("def create_loader(rows, n=1)", "return MADE['folder'](rows, n=8)")
    library = function("def create_loader(rows, n)", HAND_ON) + "MADE = {'folder': create_loader}\n" + outer
    ((what, _),) = left(job("create_loader(rows)", library, 2, between=5))
    assert what.endswith("loader.py:5")


CREATE = "def create_loader(rows, n=None)"


@pytest.mark.parametrize(
    ("call", "library", "line", "why", "what"),
    [
        ("Loader.rows(loader, 2, 4)", OF_CLASS.format("", "self"), 3, "library", LEADS),
        ("create_loader(rows, 16, workers=args.workers)", LOADER, 4, "expression", "create_loader(workers=2)"),
        ("create_loader(rows, **options)", LOADER, 4, "stars", "create_loader(workers=2)"),
        ("create_loader(rows)", function(CREATE, "n = n or 8", HAND_ON), 3, "on_the_way", "create_loader(n=2)"),
        ("create_loader(rows, n=1)", function(CREATE, HAND_ON.replace("=n", "=min(8, n)")), 2, "on_the_way",
         "create_loader(n=2)"),
        ("create_loader(rows, 4)", function(CREATE, HAND_ON.replace("=n", "=n.workers")), 2, "library", LEADS),
        ("create_loader(rows, 1, 2)", function("def create_loader(rows, n, m)", HAND_ON.replace("=n", "=n * m")), 2,
         "library", LEADS),
        ("create_loader(rows)", function("def create_loader(rows)", "return rows.map(f)"), 2, "library", LEADS),
        ("make(rows)", LOADER, 4, "no_call", "create_loader(workers=2)"),
        ("make(rows)", function("def make(rows, n=1, /)", HAND_ON), 2, "library", LEADS),
    ],
)  # fmt: skip
def test_where_it_is_not_clear_the_users_own_line_is_named(job, call, library, line, why, what):
    ((told, because),) = left(job(call, library, line))
    assert because == why
    assert told.startswith(what)


def test_a_function_by_another_name_is_named_at_the_nearest_line(job):
    assert left(job("make(rows)", outer=[1])) == [("create_loader(workers=2)", "no_call")]


def test_all_arguments_of_an_operator_are_written_or_none(job):
    found = job("create_loader(rows, 16, processes=flag)", **BOTH)
    assert left(found) == [("create_loader(workers=2, processes=True)", "expression")]
    assert found.by_hand[0].detail == "flag"
    both = job("create_loader(rows, 16, workers=count)", beside=3, also=True)
    assert left(both) == [("create_loader(workers=2)", "expression")]  # not once for each operator


def test_an_argument_that_could_be_written_alone_has_a_reason_of_its_own(job):
    library = "def create_loader(rows, n=False):\n    return rows.map(f, python_multiprocessing=n)\n"
    (what, why), rest = left(job("create_loader(rows)", library, 2, **BOTH))
    assert (what.startswith(LEADS), why, rest) == (True, "library", ("create_loader(n=True)", "rest"))


MAPPED = HAND_ON.replace("return", "rows =")
SECOND = HAND_ON.replace("(f,", "(g,")


@pytest.mark.parametrize(
    ("call", "library", "more"),
    [
        (CALL, LOADER, {"beside": 3}),  # it sets an operator that is to stay
        ("make(rows)", function(MAKE, MAPPED, SECOND.replace("=n", "=n + 1")), {"beside": 3}),
        ("make(rows)", function(MAKE, MAPPED, "def more():", f">{SECOND}", "return more()"), {"beside": 4}),
        ("make(rows)", function("class make", "def __init__(self, rows, n=1):", ">self.n = n", f">self.{MAPPED}"), {}),
        ("make(rows)", function(MAKE, "ds.config.set_num_parallel_workers(n)", HAND_ON), {}),
        ("make(rows)", function(MAKE, "pool = Pool(n)", HAND_ON), {}),
        ("make(rows)", function(MAKE, "return other(rows.map(f, num_parallel_workers=n), n)")
         + function("def added(rows, n)", SECOND) + "other = added\n", {"beside": 4, "beside_between": 2}),
    ],
)  # fmt: skip
def test_an_argument_that_does_more_than_set_the_operator_is_left_alone(job, call, library, more):
    line = library[: library.index("map(cut" if library == LOADER else "map(f")].count("\n") + 1
    assert [why for _, why in left(job(call, library, line, **more))] == ["shared_argument"]


def test_an_argument_that_sets_operators_that_are_all_to_change_is_written(job):
    assert added(job(CALL, beside=3, also=True)) == "create_loader(rows, 16, workers=2)"


def test_a_batch_of_a_library_is_named_at_the_users_line(tmp_path):
    place = f"{tmp_path}/site-packages/loader.py:9"
    one = OperatorSetting(node=0, op_type="BatchOp", place=place, maps_after=1)
    row = {"node": 0, "op_type": "BatchOp", "site": place, "callers": f"{tmp_path}/train.py:3"}
    for workdir in (tmp_path, tmp_path / "elsewhere"):  # a script that lies elsewhere is the user's all the same
        found = patch_of(Settings(operators=(one,)), workdir, (), [row])
        assert left(found) == [(f".batch() in front of 1 map in the call that leads to {place}", "library")]


def test_a_source_that_is_nested_too_deeply_is_named(job, monkeypatch):
    """Such as a sum of 400 words, which is parsed, but not gone through."""

    def too_deep(*_args):
        raise RecursionError

    monkeypatch.setattr(arguments, "call_at", too_deep)
    assert [why for _, why in left(job("create_loader(rows)", beside=3))] == ["library"]


def test_operators_that_one_argument_sets_are_known(tmp_path):
    (tmp_path / "loader.py").write_text(LOADER)
    (tmp_path / "train.py").write_text("create_loader(rows, 16)\n")
    caller = f"{tmp_path / 'train.py'}:1"
    rows = [
        {"op_id": number, "op_type": "MapOp", "site": f"{tmp_path / 'loader.py'}:{line}", "callers": caller}
        for number, line in ((2, 3), (1, 4))
    ]
    rows.append({"op_id": 0, "op_type": "BatchOp", "site": None, "callers": None})
    assert set_together(rows) == {(1, "workers"): {1, 2}, (2, "workers"): {1, 2}}
