"""The argument of the user's own call is found over the functions that hand it on, a library's or the user's."""

import pytest

from pipeprof.experiment.tune.patch import patch_of
from pipeprof.record.settings_file import OperatorSetting, Settings

LOADER = """
def create_loader(rows, size, *, workers=None, processes=False):
    rows = rows.map(cast, num_parallel_workers=workers)
    rows = rows.map(cut, num_parallel_workers=workers, python_multiprocessing=processes)
    return rows.batch(size)
"""


@pytest.fixture
def job(tmp_path):
    """A library that is installed beside the user's project, and the project; returns what patches train.py."""

    def run(
        call, library=LOADER, *, line=4, beside=None, also=False, between=None, between_beside=None, outer=(), **setting
    ):
        """`beside`: the line of another map; `also`: it is to be set, too. `between`: a line of the library's."""
        packages, project = tmp_path / "lib" / "site-packages", tmp_path / "project"
        packages.mkdir(parents=True, exist_ok=True)
        project.mkdir(exist_ok=True)
        loader, train = packages / "loader.py", project / "train.py"
        loader.write_text(library)
        train.write_text(f"from loader import create_loader\n\ndata = {call}\n")
        lines = {1: line} | ({2: beside} if beside else {})
        led = {1: between, 2: between_beside or between}
        callers = {
            number: [*([f"{loader}:{led[number]}"] if led[number] else []), f"{train}:3", *outer] for number in lines
        }
        rows = [
            {"node": number, "op_type": "MapOp", "site": f"{loader}:{at}", "callers": "\n".join(callers[number])}
            for number, at in lines.items()
        ]
        wanted = [
            OperatorSetting(node=number, op_type="MapOp", place=f"{loader}:{at}", **setting)
            for number, at in lines.items()
            if number == 1 or also
        ]
        return patch_of(Settings(operators=tuple(wanted)), project, {f"{train}:3"}, rows)

    return run


def added(patch):
    """What the line of the call becomes."""
    return next(line[8:] for line in patch.diff.splitlines() if line.startswith("+data = "))


EDITS = {
    "added": ("create_loader(rows, 16)", {"workers": 2}, "create_loader(rows, 16, workers=2)"),
    "changed": ("create_loader(rows, 16, workers=1)", {"workers": 2}, "create_loader(rows, 16, workers=2)"),
    "of a module": ("loader.create_loader(rows, 16)", {"workers": 2}, "loader.create_loader(rows, 16, workers=2)"),
    "given beside **": ("create_loader(rows, workers=1, **options)", {"workers": 2}, "create_loader(rows, workers=2, **options)"),
    "two": ("create_loader(rows, 16, workers=1)", {"workers": 2, "processes": True}, "create_loader(rows, 16, workers=2, processes=True)"),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_the_argument_of_the_users_call_is_edited(job, case):
    before, setting, after = EDITS[case]
    found = job(before, **setting)
    assert found.by_hand == ()
    assert added(found) == after
    assert [place.rpartition("/")[2] for place in found.shared] == ["train.py:3"]


FORMS = {
    "by place": ("def create_loader(rows, workers):\n    return rows.map(f, num_parallel_workers=workers)\n", 2, "create_loader(rows, 1)", "create_loader(rows, 2)"),
    "a class": ("class Loader:\n    def __init__(self, rows, workers=1):\n        self.rows = rows.map(f, num_parallel_workers=workers)\n", 3, "Loader(rows, 1)", "Loader(rows, 2)"),
    "a method": ("class Loader:\n    def rows(self, workers=1):\n        return read().map(f, num_parallel_workers=workers)\n", 3, "Loader().rows()", "Loader().rows(workers=2)"),
    "a static method": ("class Loader:\n    @staticmethod\n    def rows(workers):\n        return read().map(f, num_parallel_workers=workers)\n", 4, "Loader.rows(1)", "Loader.rows(2)"),
}  # fmt: skip


METHODS = (
    "class Loader:\n{decorator}    def rows({own}, rows, n):\n        return rows.map(f, num_parallel_workers=n)\n"
)
FORMS |= {
    "a class method": (METHODS.format(decorator="    @classmethod\n", own="cls"), 4, "Loader.rows(2, 4)", "Loader.rows(2, 2)"),
    "an object": (METHODS.format(decorator="", own="self"), 3, "Loader().rows(2, 4)", "Loader().rows(2, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_functions_of_every_form_hand_it_on(job, case):
    library, line, before, after = FORMS[case]
    found = job(before, library, line=line, workers=2)
    assert found.by_hand == ()
    assert added(found) == after


def test_several_functions_and_a_decorator_hand_it_on(job):
    library = (
        "def inner(rows, n):\n    return rows.map(f, num_parallel_workers=n)\n"
        "def outer(rows, workers=1):\n    return inner(rows, n=workers)\n"
    )
    assert added(job("outer(rows)", library, line=2, between=4, workers=2)) == "outer(rows, workers=2)"
    library = (
        "def timed(function):\n    def call(*args, **more):\n        return function(*args, **more)\n    return call\n"
        "@timed\ndef outer(rows, workers=1):\n    return rows.map(f, num_parallel_workers=workers)\n"
    )
    assert added(job("outer(rows)", library, line=7, between=3, workers=2)) == "outer(rows, workers=2)"


def test_a_function_of_the_same_name_that_gives_a_value_of_its_own_is_not_passed_over(job):
    """A registry: what the user calls does not set the operator."""
    library = (
        "def create_loader(rows, workers):\n    return rows.map(f, num_parallel_workers=workers)\n"
        "MADE = {'folder': create_loader}\n"
        "def create_loader(rows, workers=1):\n    return MADE['folder'](rows, workers=8)\n"
    )
    found = job("create_loader(rows)", library, line=2, between=5, workers=2)
    assert found.diff == ""
    [one] = found.by_hand
    assert one.place.endswith("train.py:3")
    assert one.what.endswith("loader.py:5")


LEFT = {
    "on its class": (
        "Loader.rows(loader, 2, 4)", METHODS.format(decorator="", own="self"), 3,
        "library", "num_parallel_workers=2 in the call that leads to",
    ),
    "computed": ("create_loader(rows, 16, workers=args.workers)", LOADER, 4, "expression", "create_loader(workers=2)"),
    "stars": ("create_loader(rows, **options)", LOADER, 4, "stars", "create_loader(workers=2)"),
    "set again": (
        "create_loader(rows)",
        "def create_loader(rows, n=None):\n    n = n or 8\n    return rows.map(f, num_parallel_workers=n)\n",
        3, "on_the_way", "create_loader(n=2)",
    ),
    "limited": (
        "create_loader(rows, n=1)",
        "def create_loader(rows, n=None):\n    return rows.map(f, num_parallel_workers=min(8, n))\n",
        2, "on_the_way", "create_loader(n=2)",
    ),
    "of an object": (
        "create_loader(rows, options)",
        "def create_loader(rows, options):\n    return rows.map(f, num_parallel_workers=options.workers)\n",
        2, "library", "num_parallel_workers=2 in the call that leads to",
    ),
    "of two": (
        "create_loader(rows, 1, 2)",
        "def create_loader(rows, n, m):\n    return rows.map(f, num_parallel_workers=n * m)\n",
        2, "library", "num_parallel_workers=2 in the call that leads to",
    ),
    "left out": (
        "create_loader(rows)", "def create_loader(rows):\n    return rows.map(f)\n", 2,
        "library", "num_parallel_workers=2 in the call that leads to",
    ),
    "another name": ("make(rows)", LOADER, 4, "no_call", "create_loader(workers=2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_where_it_is_not_clear_the_users_own_line_is_named(job, case):
    call, library, line, why, what = LEFT[case]
    found = job(call, library, line=line, workers=2)
    assert found.diff == ""
    [one] = found.by_hand
    assert (one.place.rpartition("/")[2], one.why) == ("train.py:3", why)
    assert one.what.startswith(what)


def test_a_function_by_another_name_is_named_at_the_nearest_line(job, tmp_path):
    found = job("make(rows)", workers=2, outer=[f"{tmp_path / 'project' / 'train.py'}:1"])
    assert [(one.place.rpartition("/")[2], one.why) for one in found.by_hand] == [("train.py:3", "no_call")]


def test_an_argument_that_sets_an_operator_that_is_to_stay_is_left_alone(job):
    alone = job("create_loader(rows, 16)", beside=3, workers=2)
    assert (alone.diff, [one.why for one in alone.by_hand]) == ("", ["shared_argument"])
    both = job("create_loader(rows, 16)", beside=3, also=True, workers=2)
    assert both.by_hand == ()
    assert added(both) == "create_loader(rows, 16, workers=2)"


def test_all_arguments_of_an_operator_are_written_or_none(job):
    found = job("create_loader(rows, 16, processes=flag)", workers=2, processes=True)
    assert found.diff == ""
    both = job("create_loader(rows, 16, workers=count)", beside=3, also=True, workers=2)
    assert [one.what for one in both.by_hand] == ["create_loader(workers=2)"]  # not once for each operator
    assert [(one.what, one.why, one.detail) for one in found.by_hand] == [
        ("create_loader(workers=2, processes=True)", "expression", "flag")
    ]


MORE = {
    "adds to it": ("def make(rows, n=1):\n    rows = rows.map(f, num_parallel_workers=n)\n    return rows.map(g, num_parallel_workers=n + 1)\n", 3),
    "a function in it": ("def make(rows, n=1):\n    rows = rows.map(f, num_parallel_workers=n)\n    def more():\n        return rows.map(g, num_parallel_workers=n)\n    return more()\n", 4),
    "keeps it": ("class make:\n    def __init__(self, rows, n=1):\n        self.n = n\n        self.rows = rows.map(f, num_parallel_workers=n)\n", None),
    "sets the default": ("def make(rows, n=1):\n    ds.config.set_num_parallel_workers(n)\n    return rows.map(f, num_parallel_workers=n)\n", None),
    "makes a pool": ("def make(rows, n=1):\n    pool = Pool(n)\n    return rows.map(f, num_parallel_workers=n)\n", None),
    "by another name": ("def make(rows, n=1):\n    return other(rows.map(f, num_parallel_workers=n), n)\ndef added(rows, n):\n    return rows.map(g, num_parallel_workers=n)\nother = added\n", 4),
}  # fmt: skip


@pytest.mark.parametrize("case", MORE)
def test_an_argument_that_does_more_than_set_the_operator_is_left_alone(job, case):
    library, beside = MORE[case]
    line = library[: library.index("map(f")].count("\n") + 1
    between = 2 if case == "by another name" else None
    found = job("make(rows)", library, line=line, beside=beside, between_beside=between, workers=2)
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["shared_argument"])


def test_an_argument_that_is_also_told_is_followed(job):
    library = "def make(rows, n=1):\n    print(f'{n} workers', n)\n    return rows.map(f, num_parallel_workers=n)\n"
    assert added(job("make(rows)", library, line=3, workers=2)) == "make(rows, n=2)"


def test_a_value_that_needs_no_argument_is_nothing_that_one_sets(job):
    library = (
        "CORES = 8\ndef make(rows, n=1):\n    rows = rows.map(f, num_parallel_workers=n)\n"
        "    return rows.map(g, num_parallel_workers=min(CORES // 2, 4))\n"
    )
    assert added(job("make(rows)", library, line=3, beside=4, workers=2)) == "make(rows, n=2)"


def test_an_argument_that_can_only_be_given_by_place_is_left_alone(job):
    library = "def make(rows, n=1, /):\n    return rows.map(f, num_parallel_workers=n)\n"
    assert job("make(rows)", library, line=2, workers=2).diff == ""


def test_what_a_library_writes_out_as_it_is_wanted_needs_no_change(job):
    """A source in threads is to stay in threads, as mindone's loader has it."""
    library = "def make(rows, n=1):\n    return rows.map(f, num_parallel_workers=n, python_multiprocessing=False)\n"
    found = job("make(rows)", library, line=2, workers=2, processes=False)
    assert found.by_hand == ()
    assert added(found) == "make(rows, n=2)"


def test_an_argument_that_could_be_written_alone_has_a_reason_of_its_own(job):
    library = "def create_loader(rows, processes=False):\n    return rows.map(f, python_multiprocessing=processes)\n"
    found = job("create_loader(rows)", library, line=2, workers=2, processes=True)
    assert found.diff == ""
    assert [(one.place.rpartition("/")[2], one.what[:36], one.why) for one in found.by_hand] == [
        ("train.py:3", "num_parallel_workers=2 in the call t", "library"),
        ("train.py:3", "create_loader(processes=True)", "rest"),
    ]


def test_a_batch_of_a_library_is_named_at_the_users_line(tmp_path):
    place = f"{tmp_path}/site-packages/loader.py:9"
    one = OperatorSetting(node=0, op_type="BatchOp", place=place, maps_after=1)
    row = {"node": 0, "op_type": "BatchOp", "site": place, "callers": f"{tmp_path}/train.py:3"}
    for workdir in (tmp_path, tmp_path / "elsewhere"):  # a script that lies elsewhere is the user's all the same
        found = patch_of(Settings(operators=(one,)), workdir, (), [row])
        assert [(one.place, one.what, one.why) for one in found.by_hand] == [
            (f"{tmp_path}/train.py:3", f".batch() in front of 1 map in the call that leads to {place}", "library")
        ]


def test_a_source_that_is_nested_too_deeply_is_named(job, monkeypatch):
    """Such as a sum of 400 words, which is parsed, but not gone through."""
    from pipeprof.experiment.tune import arguments

    def too_deep(*_args):
        raise RecursionError

    monkeypatch.setattr(arguments, "call_at", too_deep)
    found = job("create_loader(rows)", beside=3, workers=2)
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["library"])


def test_operators_that_one_argument_sets_are_known(tmp_path):
    from pipeprof.experiment.tune.arguments import set_together

    (tmp_path / "loader.py").write_text(LOADER)
    (tmp_path / "train.py").write_text("create_loader(rows, 16)\n")
    rows = [
        {"op_id": number, "op_type": "MapOp", "site": f"{tmp_path / 'loader.py'}:{line}",
         "callers": f"{tmp_path / 'train.py'}:1"}
        for number, line in ((2, 3), (1, 4))
    ]  # fmt: skip
    assert set_together([*rows, {"op_id": 0, "op_type": "BatchOp", "site": None, "callers": None}]) == {
        (1, "workers"): {1, 2}, (2, "workers"): {1, 2},
    }  # fmt: skip
