"""The diff applies, changes nothing but the keywords, and where there is doubt the line is named instead."""

import ast
import inspect
import subprocess

import pytest
from mindspore_sources import source_classes

from pipeprof.collect.probe import describe
from pipeprof.experiment.tune import patch as patching
from pipeprof.experiment.tune.patch import BEFORE, READER, patch_of
from pipeprof.experiment.tune.source import calls_of
from pipeprof.record.settings_file import OperatorSetting, Settings

NODES = {"MapOp": 1, "GeneratorOp": 2, "BatchOp": 0}


def patch(folder, text, *wanted, name="train.py", **more):
    """The patch of a file for (op_type, line, workers, processes)."""
    path = folder / name
    path.write_bytes(text.encode())
    operators = tuple(
        OperatorSetting(node=number, op_type=kind, place=f"{path}:{line}", workers=workers, processes=processes)
        for number, (kind, line, workers, processes) in enumerate(wanted)
    )
    return patch_of(Settings(site=f"{path}:1", operators=operators, **more), folder)


def applied(folder, diff):
    """The text of train.py after `git apply`."""
    (folder / "change.diff").write_bytes(diff.encode())
    done = subprocess.run(["git", "apply", "change.diff"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "train.py").read_bytes().decode()


READERS = {
    "TFReaderOp": "data = ds.TFRecordDataset(files, schema, shuffle=False",
    "MindRecordOp": "data = ds.MindDataset('a.mindrecord', ['x']",
    "ImageFolderOp": 'data = ImageFolderDataset("pictures"',
    "CifarOp": "data = ds.Cifar10Dataset('cifar', 'train', 100",
}


@pytest.mark.parametrize("op_type", READERS)
def test_readers_of_mindspore_get_their_workers(tmp_path, op_type):
    found = patch(tmp_path, READERS[op_type] + ")\n", (op_type, 1, 2, None))
    assert found.by_hand == ()
    assert applied(tmp_path, found.diff) == READERS[op_type] + ", num_parallel_workers=2)\n"


def test_a_reader_whose_workers_may_be_given_by_place_is_left_alone(tmp_path):
    found = patch(tmp_path, "data = ds.ImageFolderDataset('pictures', 100, 4)\n", ("ImageFolderOp", 1, 2, None))
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["positional"])


def test_every_reader_is_found_by_its_class_and_takes_its_workers_behind_the_place_that_is_left_alone():
    """Whatever is called for what runs: a CLUEDataset is a ClueOp, an IWSLT2016Dataset an IWSLTOp."""
    seen = 0
    for name, made in source_classes().items():
        kind = describe._kind(object.__new__(made))
        op_type = describe.READERS.get(kind, kind)
        if op_type == "GeneratorOp" and name != "GeneratorDataset":
            continue  # classes in Python, whose arguments are not those of a generator
        assert name in calls_of(op_type)
        names = list(inspect.signature(made.__init__).parameters)[1:]
        if "num_parallel_workers" in names:
            seen += 1
            assert names.index("num_parallel_workers") >= BEFORE.get(op_type, READER), name
    assert seen > 40


EDITS = {
    "added": ("data = data.map(f, ['x'])\n", "data = data.map(f, ['x'], num_parallel_workers=2)\n"),
    "changed": (
        "data = data.map(f, ['x'],  num_parallel_workers = 1 )  # slow\n",
        "data = data.map(f, ['x'],  num_parallel_workers = 2 )  # slow\n",
    ),
    "none": ("data = data.map(f, num_parallel_workers=None)\n", "data = data.map(f, num_parallel_workers=2)\n"),
    "bracketed": ("data = data.map((f))\n", "data = data.map((f), num_parallel_workers=2)\n"),
    "comma": ("data = data.map(f, )\n", "data = data.map(f, num_parallel_workers=2, )\n"),
    "chain": (
        "data = data.map(f).batch(4, num_parallel_workers=1)\n",
        "data = data.map(f, num_parallel_workers=2).batch(4, num_parallel_workers=1)\n",
    ),
    "lines": (
        "data = (data\n    .shuffle(4)\n    .map(\n        f,  # slow\n        ['x'],  # pictures\n    )\n)\n",
        "data = (data\n    .shuffle(4)\n    .map(\n        f,  # slow\n        ['x'], num_parallel_workers=2,  # pictures\n    )\n)\n",
    ),
    "crlf": ("# a\r\ndata = data.map(f)\r\n", "# a\r\ndata = data.map(f, num_parallel_workers=2)\r\n"),
    "no_newline": ("data = data.map(f)", "data = data.map(f, num_parallel_workers=2)"),
    "byte_order_mark": ("\ufeffdata = data.map(f)\n", "\ufeffdata = data.map(f, num_parallel_workers=2)\n"),
    "form_feed": ("\x0c# a\ndata = data.map(f)\n", "\x0c# a\ndata = data.map(f, num_parallel_workers=2)\n"),
}


@pytest.mark.parametrize("case", EDITS)
def test_the_diff_applies_and_keeps_the_formatting(tmp_path, case):
    before, after = EDITS[case]
    line = next(number for number, text in enumerate(before.split("\n"), start=1) if "map(" in text)
    found = patch(tmp_path, before, ("MapOp", line, 2, None))
    assert found.by_hand == ()
    assert applied(tmp_path, found.diff) == after


def test_several_operators_of_a_file_are_changed_together(tmp_path):
    text = (
        "data = ds.GeneratorDataset(Rows(), ['x'], num_parallel_workers=1)\ndata = data.map(f)\ndata = data.batch(8)\n"
    )
    wanted = [("BatchOp", 3, 2, True), ("MapOp", 2, None, True), ("GeneratorOp", 1, 4, False)]
    after = applied(tmp_path, patch(tmp_path, text, *wanted).diff)
    assert after == (
        "data = ds.GeneratorDataset(Rows(), ['x'], num_parallel_workers=4, python_multiprocessing=False)\n"
        "data = data.map(f, python_multiprocessing=True)\n"
        "data = data.batch(8, num_parallel_workers=2, python_multiprocessing=True)\n"
    )


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("data = data.map(f, num_parallel_workers=args.workers)\n", 1, "expression"),
        ("data = data.map(f, **options)\n", 1, "stars"),
        ("data = data.map(*all)\n", 1, "stars"),
        ("data = data.map(f, ['x'], ['x'], 1)\n", 1, "positional"),
        ("data = data.map(f).map(g)\n", 1, "several_calls"),
        ("data = make(data)\n", 1, "no_call"),
        ("data = data.map(f)\n", 7, "no_call"),
        ("data = data.map(f\n", 1, "unreadable"),
    ],
)
def test_where_it_is_not_clear_the_line_is_named(tmp_path, text, line, why):
    found = patch(tmp_path, text, ("MapOp", line, 2, None))
    assert found.diff == ""
    assert [(one.why, one.what) for one in found.by_hand] == [(why, "num_parallel_workers=2")]
    assert found.by_hand[0].place == f"{tmp_path / 'train.py'}:{line}"


def test_a_line_that_makes_two_operators_is_left_alone(tmp_path):
    text = "for f in (one, two):\n    data = data.map(f)\n"
    found = patch(tmp_path, text, ("MapOp", 2, 2, None), ("MapOp", 2, 4, None))
    assert found.diff == ""
    assert [one.why for one in found.by_hand] == ["same_line", "same_line"]


def test_of_several_operators_of_a_line_the_one_that_is_meant_is_named(tmp_path):
    (tmp_path / "train.py").write_text("for f in (one, two):\n    data = data.map(f)\n")
    place = f"{tmp_path / 'train.py'}:2"
    rows = [{"node": node, "site": place, "op_type": "MapOp"} for node in (1, 2)]
    one = OperatorSetting(node=1, op_type="MapOp", name="two", place=place, workers=2)
    found = patch_of(Settings(operators=(one,)), tmp_path, (), rows)
    assert [(entry.what, entry.why, entry.detail) for entry in found.by_hand] == [
        ("num_parallel_workers=2", "same_line", "two")
    ]


def test_operators_of_different_kinds_at_one_line_are_changed(tmp_path):
    text = "data = ds.GeneratorDataset(rows, ['x']).map(f).batch(8)\n"
    wanted = [("BatchOp", 1, 2, True), ("MapOp", 1, 3, None), ("GeneratorOp", 1, 4, False)]
    found = patch(tmp_path, text, *wanted)
    assert found.by_hand == ()
    assert applied(tmp_path, found.diff) == (
        "data = ds.GeneratorDataset(rows, ['x'], num_parallel_workers=4, python_multiprocessing=False)"
        ".map(f, num_parallel_workers=3).batch(8, num_parallel_workers=2, python_multiprocessing=True)\n"
    )


@pytest.mark.parametrize(("made", "why"), [(("MapOp", "MapOp"), ["same_line"]), (("MapOp", "GeneratorOp"), [])])
def test_a_call_that_makes_more_operators_than_are_changed_is_left_alone(tmp_path, made, why):
    """`for f in (one, two): data = data.map(f)` of which one is to have more workers."""
    path = tmp_path / "train.py"
    path.write_text("data = data.map(f)\n")
    one = OperatorSetting(node=1, op_type="MapOp", place=f"{path}:1", workers=2)
    rows = [{"site": f"{path}:1", "op_type": kind} for kind in made]
    found = patch_of(Settings(operators=(one,)), tmp_path, (), rows)
    assert [entry.why for entry in found.by_hand] == why
    assert bool(found.diff) is not bool(why)


def test_a_batch_is_not_moved_where_its_call_makes_several(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("data = data.map(f)\ndata = data.batch(8)\n")
    one = OperatorSetting(node=0, op_type="BatchOp", place=f"{path}:2", maps_after=1)
    rows = [{"site": f"{path}:2", "op_type": "BatchOp"}]
    moved = patch_of(Settings(operators=(one,)), tmp_path, {f"{path}:2"}, rows)
    assert moved.shared == (f"{path}:2",)
    left = patch_of(Settings(operators=(one,)), tmp_path, (), rows * 2)
    assert (left.diff, [entry.why for entry in left.by_hand]) == ("", ["same_line"])


def test_files_of_others_are_not_touched(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "lib.py").write_text("data = data.map(f)\n")
    one = OperatorSetting(node=1, op_type="MapOp", place=f"{tmp_path / 'lib.py'}:1", workers=2)
    found = patch_of(Settings(operators=(one,)), tmp_path / "mine")
    assert (found.diff, [entry.why for entry in found.by_hand]) == ("", ["outside"])


def test_what_is_global_or_of_the_environment_is_named(tmp_path):
    of_a_library = patch_of(Settings(site=f"{tmp_path}/site-packages/trainer.py:1", prefetch=64), tmp_path)
    assert [(one.place, one.why) for one in of_a_library.by_hand] == [("", "global")]
    found = patch(tmp_path, "data = 1\n", prefetch=64, environment={"OMP_NUM_THREADS": "1"})
    assert [(one.why, one.what) for one in found.by_hand] == [
        ("global", "mindspore.dataset.config.set_prefetch_size(64)"), ("environment", "OMP_NUM_THREADS=1"),
    ]  # fmt: skip


def test_what_the_command_runs_in_is_named_and_shared_memory_is_an_argument(tmp_path):
    (tmp_path / "train.py").write_text("data = data.map(f, ['x'])\n", encoding="utf-8")
    one = OperatorSetting(node=1, op_type="MapOp", place=f"{tmp_path}/train.py:1", max_rowsize=5)
    found = patch_of(Settings(operators=(one,), runtime_threads=2, cpus="0-3"), tmp_path)
    assert "+data = data.map(f, ['x'], max_rowsize=5)" in found.diff
    told = [(item.what, item.why) for item in found.by_hand]
    assert told == [("mindspore.set_context(runtime_num_threads=2)", "context"), ("taskset -c 0-3", "command")]


def test_a_line_that_other_pipelines_share_is_said(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("data = data.map(f)\n")
    one = OperatorSetting(node=1, op_type="MapOp", place=f"{path}:1", workers=2)
    found = patch_of(Settings(operators=(one,)), tmp_path, {f"{path}:1"})
    assert found.shared == (f"{path}:1",)


def test_without_the_library_every_line_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "libcst", None)
    found = patch(tmp_path, "data = data.map(f)\n", ("MapOp", 1, 2, None))
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["no_libcst"])


def test_every_edit_is_python_with_one_keyword_more(tmp_path):
    for kind in (*BEFORE, "MindRecordOp", "ClueOp"):
        text = f"data = data.{min(calls_of(kind))}(f)\n"
        after = applied(tmp_path, patch(tmp_path, text, (kind, 1, 3, None)).diff)
        call = ast.parse(after).body[0].value
        assert [(word.arg, word.value.value) for word in call.keywords] == [("num_parallel_workers", 3)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rows = pool.map(\n    lambda part: make(part),\n    parts,\n)\n", 2),  # `make` is a name of `Dataset.map`
        ("data = make(data, list(map(str, names)))\n", 1),
    ],
)
def test_a_call_of_something_else_is_not_taken_for_the_operators(tmp_path, text, line):
    found = patch(tmp_path, text, ("MapOp", line, 2, None))
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["no_call"])


def test_an_installed_library_below_the_working_directory_is_not_touched(tmp_path):
    folder = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "loader.py").write_text("data = data.map(f)\n")
    one = OperatorSetting(node=1, op_type="MapOp", place=f"{folder / 'loader.py'}:1", workers=2)
    found = patch_of(Settings(operators=(one,)), tmp_path)
    assert (found.diff, [entry.why for entry in found.by_hand]) == ("", ["library"])


def test_a_source_that_is_nested_too_deeply_is_named(tmp_path, monkeypatch):
    """Such as a sum of 500 words; libcst goes into each in turn."""

    def too_deep(*_args):
        raise RecursionError

    monkeypatch.setattr(patching, "_with_value", too_deep)
    found = patch(tmp_path, "data = data.map(f)\n", ("MapOp", 1, 2, None))
    assert (found.diff, [one.why for one in found.by_hand]) == ("", ["unreadable"])


def test_a_file_whose_name_has_blanks_is_found(tmp_path):
    path = tmp_path / "train all.py"
    found = patch(tmp_path, "data = data.map(f)\n", ("MapOp", 1, 2, None), name=path.name)
    (tmp_path / "train.py").write_text("")
    applied(tmp_path, found.diff)
    assert path.read_text() == "data = data.map(f, num_parallel_workers=2)\n"


LOADERS = {
    "added": ("loader = DataLoader(Rows(), 4)\n", "loader = DataLoader(Rows(), 4, num_workers=2, persistent_workers=True)\n"),
    "by_keyword": (
        "loader = data.DataLoader(rows, num_workers=0, persistent_workers=False)\n",
        "loader = data.DataLoader(rows, num_workers=2, persistent_workers=True)\n",
    ),
    "by_place": (
        "loader = DataLoader(rows, 4, True, None, None, 0)\n",
        "loader = DataLoader(rows, 4, True, None, None, 2, persistent_workers=True)\n",
    ),
}  # fmt: skip


def of_loader(line, **settings):
    return OperatorSetting(node=0, op_type="Collate", place=line, of_loader=True, **settings)


@pytest.mark.parametrize("case", LOADERS)
def test_the_call_that_makes_a_loader_gets_its_arguments(tmp_path, case):
    before, after = LOADERS[case]
    (tmp_path / "train.py").write_text(before, encoding="utf-8")
    line = f"{tmp_path / 'train.py'}:1"
    stages = [
        {"node": node, "op_type": kind, "site": line} for node, kind in enumerate(("Collate", "Dataset", "Sampler"))
    ]
    found = patch_of(
        Settings(site=line, operators=(of_loader(line, workers=2, persistent=True),)), tmp_path, operators=stages
    )
    assert (found.by_hand, applied(tmp_path, found.diff)) == ((), after)


def test_the_number_that_a_function_hands_to_a_loader_is_changed_where_it_is_called(tmp_path):
    text = (
        "def make(rows, workers=0):\n"
        "    return DataLoader(rows, batch_size=4, num_workers=workers)\n"
        "loader = make(rows)\n"
    )
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    line, caller = (f"{tmp_path / 'train.py'}:{number}" for number in (2, 3))
    stages = [
        {"node": node, "op_type": kind, "site": line, "callers": caller}
        for node, kind in enumerate(("Collate", "Dataset", "Sampler"))
    ]
    settings = Settings(site=line, operators=(of_loader(line, workers=2),))
    found = patch_of(settings, tmp_path, operators=stages)
    assert (found.by_hand, applied(tmp_path, found.diff)) == (
        (),
        text.replace("make(rows)\n", "make(rows, workers=2)\n"),
    )


def test_a_loader_that_an_installed_library_makes_is_named_at_the_line_that_leads_there(tmp_path):
    library, own = f"{tmp_path}/site-packages/accelerate/data_loader.py:441", f"{tmp_path}/train.py:7"
    stages = [{"node": 0, "op_type": "Collate", "site": library, "callers": own}]
    found = patch_of(Settings(operators=(of_loader(library, workers=2),)), tmp_path, operators=stages)
    assert found.diff == ""
    assert [(one.place, one.why, one.what) for one in found.by_hand] == [
        (own, "library", f"num_workers=2 in the call that leads to {library}")
    ]
