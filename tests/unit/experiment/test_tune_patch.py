"""The diff applies, changes nothing but what was asked for, and where there is doubt the line is named instead."""

import ast
import inspect
import json
import subprocess
import sys

import pytest
from mindspore_sources import source_classes

from pipeprof.collect.probe import describe
from pipeprof.experiment.tune import patch as patching
from pipeprof.experiment.tune.patch import BEFORE, READER, patch_of
from pipeprof.experiment.tune.source import calls_of
from pipeprof.record.settings_file import OperatorSetting, Settings

TWO = {"workers": 2}
MAP, NAMED = "data = data.map(f)\n", "num_parallel_workers=2"


@pytest.fixture
def patch(tmp_path):
    """`patch(text, (op_type, line, settings)...)`: the patch of a file.

    `rows`: types of all operators, which the line of the first makes; it makes those of other pipelines where `shared`.
    """

    def make(text, *wanted, name="train.py", workdir=".", rows=(), shared=(), **more):
        path = tmp_path / name
        for folder in (path.parent, tmp_path / workdir):
            folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        operators = tuple(
            OperatorSetting(node=node, op_type=kind, place=f"{path}:{line}", **given)
            for node, (kind, line, given) in enumerate(wanted)
        )
        line = f"{path}:{wanted[0][1]}" if wanted else ""
        settings = Settings(site=f"{path}:1", operators=operators, **more)
        rows = [{"node": node, "site": line, "op_type": kind} for node, kind in enumerate(rows)]
        return patch_of(settings, tmp_path / workdir, {line} if shared else (), rows)

    return make


@pytest.fixture
def applied(tmp_path):
    """The text of train.py after `git apply`."""

    def run(found):
        assert found.by_hand == ()
        (tmp_path / "change.diff").write_bytes(found.diff.encode())
        done = subprocess.run(["git", "apply", "change.diff"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "train.py").read_bytes().decode()

    return run


def left(found):
    """What is to be done by hand and why, where nothing could be written."""
    assert found.diff == ""
    return [(one.what, one.why) for one in found.by_hand]


def changed(found):
    """The lines that are added and removed, and what is left."""
    lines = [row for row in found.diff.splitlines()[2:] if row[:1] in "+-"]
    return lines, [(one.what, one.why) for one in found.by_hand]


READERS = {
    "TFReaderOp": "data = ds.TFRecordDataset(files, schema, shuffle=False",
    "MindRecordOp": "data = ds.MindDataset('a.mindrecord', ['x']",
    "ImageFolderOp": 'data = ImageFolderDataset("pictures"',
    "CifarOp": "data = ds.Cifar10Dataset('cifar', 'train', 100",
}


@pytest.mark.parametrize("op_type", READERS)
def test_readers_of_mindspore_get_their_workers(patch, applied, op_type):
    found = patch(READERS[op_type] + ")\n", (op_type, 1, TWO))
    assert applied(found) == READERS[op_type] + ", num_parallel_workers=2)\n"


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


def test_every_edit_is_python_with_one_keyword_more(patch, applied):
    for kind in (*BEFORE, "MindRecordOp", "ClueOp"):
        after = applied(patch(f"data = data.{min(calls_of(kind))}(f)\n", (kind, 1, {"workers": 3})))
        call = ast.parse(after).body[0].value
        assert [(word.arg, word.value.value) for word in call.keywords] == [("num_parallel_workers", 3)]


EDITS = {
    "added": ("data = data.map(f, ['x']$)\n", ", W"),
    "changed": ("data = data.map(f, ['x'],  $ )  # slow\n", "num_parallel_workers = 2", "num_parallel_workers = 1"),
    "none": ("data = data.map(f, $)\n", "W", "num_parallel_workers=None"),
    "bracketed": ("data = data.map((f)$)\n", ", W"),
    "comma": ("data = data.map(f, $)\n", "W, "),
    "chain": ("data = data.map(f$).batch(4, num_parallel_workers=1)\n", ", W"),
    "lines": (
        "data = (data\n    .shuffle(4)\n    .map(\n        f,  # slow\n        ['x'],$  # pictures\n    )\n)\n", " W,"
    ),
    "crlf": ("# a\r\ndata = data.map(f$)\r\n", ", W"),
    "no_newline": ("data = data.map(f$)", ", W"),
    "byte_order_mark": ("\ufeffdata = data.map(f$)\n", ", W"),
    "form_feed": ("\x0c# a\ndata = data.map(f$)\n", ", W"),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_the_diff_applies_and_keeps_the_formatting(patch, applied, case):
    """In place of `$` stands nothing, or what is there before, and then what is there after; `W`: the argument."""
    text, after, before = (*EDITS[case], "")[:3]
    line = next(number for number, one in enumerate(text.split("\n"), start=1) if "map(" in one)
    found = patch(text.replace("$", before), ("MapOp", line, TWO))
    assert applied(found) == text.replace("$", after.replace("W", NAMED))


@pytest.mark.parametrize(("between", "lines"), [("\ndata = data", (3, 2, 1)), ("", (1, 1, 1))])
def test_several_operators_of_a_file_or_of_one_line_are_changed_together(patch, applied, between, lines):
    def text(source="", mapped="", batched=""):
        calls = f"ds.GeneratorDataset(Rows(), ['x']{source})", f".map(f{mapped})", f".batch(8{batched})"
        return f"data = {between.join(calls)}\n"

    settings = TWO | {"processes": True}, {"processes": True}, {"workers": 4, "processes": False}
    wanted = zip(("BatchOp", "MapOp", "GeneratorOp"), lines, settings, strict=True)
    assert applied(patch(text(), *wanted)) == text(
        ", num_parallel_workers=4, python_multiprocessing=False",
        ", python_multiprocessing=True",
        ", num_parallel_workers=2, python_multiprocessing=True",
    )


SITE_PACKAGES = ".venv/lib/python3.11/site-packages/loader.py"


@pytest.mark.parametrize(
    ("op_type", "text", "line", "why", "where"),
    [
        ("MapOp", "data = data.map(f, num_parallel_workers=args.workers)\n", 1, "expression", {}),
        ("MapOp", "data = data.map(f, **options)\n", 1, "stars", {}),
        ("MapOp", "data = data.map(*all)\n", 1, "stars", {}),
        ("MapOp", "data = data.map(f, ['x'], ['x'], 1)\n", 1, "positional", {}),
        ("ImageFolderOp", "data = ds.ImageFolderDataset('pictures', 100, 4)\n", 1, "positional", {}),
        ("MapOp", "data = data.map(f).map(g)\n", 1, "several_calls", {}),
        ("MapOp", "data = make(data)\n", 1, "no_call", {}), ("MapOp", MAP, 7, "no_call", {}),
        # of something else; `make` is a name of `Dataset.map`
        ("MapOp", "rows = pool.map(\n    lambda part: make(part),\n    parts,\n)\n", 2, "no_call", {}),
        ("MapOp", "data = make(data, list(map(str, names)))\n", 1, "no_call", {}),
        ("MapOp", "data = data.map(f\n", 1, "unreadable", {}),
        ("MapOp", MAP, 1, "outside", {"name": "lib.py", "workdir": "mine"}),  # files of others are not touched
        ("MapOp", MAP, 1, "library", {"name": SITE_PACKAGES}),  # which lies below the working directory
    ],
)  # fmt: skip
def test_where_it_is_not_clear_the_line_is_named(patch, tmp_path, op_type, text, line, why, where):
    found = patch(text, (op_type, line, TWO), **where)
    assert left(found) == [(NAMED, why)]
    assert found.by_hand[0].place == f"{tmp_path / where.get('name', 'train.py')}:{line}"


@pytest.mark.parametrize(
    ("made", "whys"), [(("MapOp", "MapOp"), ["same_line"]), (("MapOp", "GeneratorOp"), []), ((), ["same_line"] * 2)]
)
def test_a_call_that_makes_more_operators_than_are_changed_is_left_alone(patch, made, whys):
    """`for f in (one, two): data = data.map(f)` of which one is to have more workers, or each another number."""
    text, one = "for f in (one, two):\n    data = data.map(f)\n", ("MapOp", 2, TWO | {"name": "two"})
    found = patch(text, *([one] if made else [one, ("MapOp", 2, {"workers": 4, "name": "two"})]), rows=made)
    assert [(entry.why, entry.detail) for entry in found.by_hand] == [(why, "two") for why in whys]
    assert bool(found.diff) is not bool(whys)


def test_what_is_global_or_of_the_environment_is_named(patch, tmp_path):
    of_a_library = patch_of(Settings(site=f"{tmp_path}/site-packages/trainer.py:1", prefetch=64), tmp_path)
    assert [(one.place, one.why) for one in of_a_library.by_hand] == [("", "global")]
    more = {"prefetch": 64, "environment": {"OMP_NUM_THREADS": "1"}, "runtime_threads": 2, "cpus": "0-3"}
    found = patch("data = data.map(f, ['x'])\n", ("MapOp", 1, {"max_rowsize": 5}), **more)
    lines, by_hand = changed(found)
    assert "+data = data.map(f, ['x'], max_rowsize=5)" in lines  # shared memory is an argument
    assert by_hand == [
        ("mindspore.dataset.config.set_prefetch_size(64)", "global"), ("OMP_NUM_THREADS=1", "environment"),
        ("mindspore.set_context(runtime_num_threads=2)", "context"), ("taskset -c 0-3", "command"),
    ]  # fmt: skip


def test_a_line_that_other_pipelines_share_is_said(patch, tmp_path):
    line = f"{tmp_path / 'train.py'}:1"
    assert patch(MAP, ("MapOp", 1, TWO), shared=True).shared == (line,)
    batch = ("BatchOp", 1, {"maps_after": 1})
    assert patch("data = data.map(f).batch(8)\n", batch, shared=True, rows=["BatchOp"]).shared == (line,)


def test_without_the_library_and_where_it_gives_up_every_line_is_named(patch, monkeypatch):
    """It gives up on a sum of 500 words, for it goes into each in turn."""

    def too_deep(*_args):
        raise RecursionError

    with monkeypatch.context() as changes:
        changes.setattr(patching, "_with_value", too_deep)
        assert left(patch(MAP, ("MapOp", 1, TWO))) == [(NAMED, "unreadable")]
    monkeypatch.setitem(sys.modules, "libcst", None)
    assert left(patch(MAP, ("MapOp", 1, TWO))) == [(NAMED, "no_libcst")]


def test_a_file_whose_name_has_blanks_is_found(patch, applied, tmp_path):
    (tmp_path / "train.py").write_text("")
    assert applied(patch(MAP, ("MapOp", 1, TWO), name="train all.py")) == ""
    assert (tmp_path / "train all.py").read_text() == "data = data.map(f, num_parallel_workers=2)\n"


LOADERS = {
    "added": ("DataLoader(Rows(), 4)", "DataLoader(Rows(), 4, num_workers=2, persistent_workers=True)"),
    "by_keyword": (
        "data.DataLoader(rows, num_workers=0, persistent_workers=False)",
        "data.DataLoader(rows, num_workers=2, persistent_workers=True)",
    ),
    "by_place": (
        "DataLoader(rows, 4, True, None, None, 0)",
        "DataLoader(rows, 4, True, None, None, 2, persistent_workers=True)",
    ),
}


def of_loader(folder, line, caller=None, **setting):
    """The patch of a DataLoader that a line makes, which a caller leads to."""
    one = OperatorSetting(node=0, op_type="Collate", place=line, of_loader=True, workers=2, **setting)
    stages = [
        {"node": node, "op_type": kind, "site": line, "callers": caller}
        for node, kind in enumerate(("Collate", "Dataset", "Sampler"))
    ]
    return patch_of(Settings(site=line, operators=(one,)), folder, operators=stages)


@pytest.mark.parametrize("case", LOADERS)
def test_the_call_that_makes_a_loader_gets_its_arguments(tmp_path, applied, case):
    before, after = LOADERS[case]
    (tmp_path / "train.py").write_text(f"loader = {before}\n", encoding="utf-8")
    assert applied(of_loader(tmp_path, f"{tmp_path / 'train.py'}:1", persistent=True)) == f"loader = {after}\n"


def test_the_number_that_a_function_hands_to_a_loader_is_changed_where_it_is_called(tmp_path, applied):
    made = "def make(rows, workers=0):\n    return DataLoader(rows, batch_size=4, num_workers=workers)\n"
    (tmp_path / "train.py").write_text(f"{made}loader = make(rows)\n", encoding="utf-8")
    found = of_loader(tmp_path, *(f"{tmp_path / 'train.py'}:{number}" for number in (2, 3)))
    assert applied(found) == f"{made}loader = make(rows, workers=2)\n"


def test_a_loader_that_an_installed_library_makes_is_named_at_the_line_that_leads_there(tmp_path):
    library, own = f"{tmp_path}/site-packages/accelerate/data_loader.py:441", f"{tmp_path}/train.py:7"
    found = of_loader(tmp_path, library, own)
    assert left(found) == [(f"num_workers=2 in the call that leads to {library}", "library")]
    assert found.by_hand[0].place == own


WHOLE = "data = data.batch(32, drop_remainder=True)  # whole ones"
LINES = f'data = make()\ndata = data.map(f, ["x"])  # scale\ndata = data.map(g, ["x"])\n{WHOLE}\ntrain(data)\n'
END = 'data = (\n    make()\n    .map(f, ["x"])\n    .map(g,\n         ["x"])\n    .batch(32)\n)\n'
CHAIN = END.replace("(32)\n", "(32)\n    .repeat(2)\n")
MOVED = ["+    .batch(32)", "-    .batch(32)"]


@pytest.mark.parametrize(
    ("text", "line", "maps", "more", "lines"),
    [
        (LINES, 4, 2, {}, [f"+{WHOLE}", f"-{WHOLE}"]), (CHAIN, 6, 2, {}, MOVED), (END, 6, 1, {}, MOVED),
        (END, 6, 2, {}, MOVED),
        ("data = make().map(f).map(g).batch(4)\n", 1, 1, {},  # only the nearest map
         ["-data = make().map(f).map(g).batch(4)", "+data = make().map(f).batch(4).map(g)"]),
        ("data = make().map(f).batch(4)\n", 1, 1, TWO,
         ["-data = make().map(f).batch(4)", "+data = make().batch(4, num_parallel_workers=2).map(f)"]),
    ],
)  # fmt: skip
def test_a_batch_goes_in_front_of_its_maps_and_its_workers_are_written_too(patch, text, line, maps, more, lines):
    assert changed(patch(text, ("BatchOp", line, {"maps_after": maps} | more))) == (lines, [])


@pytest.mark.parametrize(
    ("text", "line", "why", "more"),
    [
        ("data = make().map(f)\nprint(data)\ndata = data.batch(4)\n", 3, "order", {}),
        ("data = make().map(f).shuffle(9).batch(4)\n", 1, "order", {}),
        ("data = (\n    make()\n    .map(f)  # scale\n    .batch(4)\n)\n", 4, "order", {}),
        ("other = data.map(f)\ndata = other.batch(4)\n", 2, "order", {}),
        ("data = data.map(f)\ndata = data.batch(part_of(data))\n", 2, "order", {}),
        ("data = data.map(f, data.get_col_names())\ndata = data.batch(4)\n", 2, "order", {}),
        ("data = make().map(f).batch(4)\n", 2, "no_call", {}), ("data = make(.map(f).batch(4)\n", 1, "unreadable", {}),
        ("train, test = one.map(f).batch(4), other.map(f).batch(8)\n", 1, "several_calls", {}),
        ("data = data.map(f).batch(4)\n", 1, "outside", {"name": "lib.py", "workdir": "mine"}),
        ("data = data.map(f)\ndata = data.batch(8)\n", 2, "same_line", {"rows": ["BatchOp"] * 2}),
    ],
)  # fmt: skip
def test_where_they_are_not_in_a_row_the_line_of_the_batch_is_named(patch, text, line, why, more):
    assert left(patch(text, ("BatchOp", line, {"maps_after": 1}), **more)) == [(".batch() in front of 1 map", why)]


@pytest.mark.parametrize(
    ("behind", "what"),  # a shuffle behind the map stays where it is
    [(["ShuffleOp", "MapOp", "ShuffleOp"], ".shuffle() and behind it "), (["MapOp", "ShuffleOp"], "")],
)
def test_a_shuffle_that_goes_along_is_named(patch, behind, what):
    rows = ["BatchOp", *behind, "GeneratorOp"]
    found = patch("data = make().map(f).shuffle(9).batch(4)\n", ("BatchOp", 1, {"maps_after": 1}), rows=rows)
    assert left(found) == [(f"{what}.batch() in front of 1 map", "order")]


# Scripts in many forms are run, patched and run again. Their dataset only notes how it was made, and by which lines, as
# the recording of a real one says.
DATASET = """
import json, sys


class Dataset:
    def __init__(self, kind, name, workers, child=None):
        frame, lines = sys._getframe(1), []
        while frame is not None:
            lines += [] if frame.f_code.co_filename == __file__ else [f"{frame.f_code.co_filename}:{frame.f_lineno}"]
            frame = frame.f_back
        known = {"op_type": kind, "name": name, "workers": workers, "site": lines[0], "callers": "\\n".join(lines[1:])}
        self.made = [known, *(child.made if child else ())]

    def map(self, name, columns=None, num_parallel_workers=1):
        return Dataset("MapOp", name, num_parallel_workers, self)

    def batch(self, size, drop_remainder=False, num_parallel_workers=1):
        return Dataset("BatchOp", "", num_parallel_workers, self)


class ImageFolderDataset(Dataset):
    def __init__(self, path, number=None, num_parallel_workers=1):
        super().__init__("ImageFolderOp", "", num_parallel_workers)
"""
READ = 'ds.ImageFolderDataset("x")'
FORMS = {
    "one line": f'data = {READ}.map("a").map("b").batch(8)\n',
    "brackets": f'data = (\n  {READ}\n  .map("a")\n  .map(\n    "b",\n    ["x"],\n  )\n  .batch(8)\n)\n',
    "brackets of a part": f'data = (\n    ({READ}\n     .map("a"))\n    .map("b")\n).batch(8)\n',
    "backslashes": f'data = {READ} \\\n    .map("a") \\\n    .map("b") \\\n    .batch(8)\n',
    "lines": f'data = {READ}\ndata = data.map("a")  # 1\n# second\ndata = data.map(\n    "b",\n)\ndata = data.batch(8)',
    "returned": 'def make(path):\n    return (ds.ImageFolderDataset(path)\n            .map("a").map("b")\n'
    '            .batch(8))\n\n\ndata = make("x")\n',
    "within a call": f'data = max([{READ}.map("a").map("b").batch(8)], key=id)\n',
    "carriage returns": f'data = (\r\n    {READ}\r\n    .map("a")\r\n    .map("b")\r\n    .batch(8))\r\n',
    "tabs": f'if True:\n\tdata = {READ}\n\tdata = data.map("a")\n\tdata = data.map("b")\n\tdata = data.batch(8)',
    "helper": 'def make(n=1, m=1):\n    data = ds.ImageFolderDataset("x", num_parallel_workers=n)\n'
    '    data = data.map("a", num_parallel_workers=m)\n    data = data.map("b")\n    data = data.batch(8)\n'
    "    return data\ndata = make()\n",
}
WANTED = {"one map": {2: {"workers": 7}}, "all": {node: {"workers": 3 + node} for node in range(4)}}
WANTED |= {f"batch first of {maps}": {0: {"workers": 2, "maps_after": maps}} for maps in (1, 2)}


def made_by(folder):
    """The operators of the script, nearest the loop first."""
    script = f"import json, runpy; print(json.dumps(runpy.run_path('{folder}/train.py')['data'].made))"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [row | {"node": node} for node, row in enumerate(json.loads(done.stdout))]


@pytest.mark.parametrize("form", FORMS)
def test_the_patched_script_makes_the_operators_that_were_asked_for(tmp_path, applied, form):
    (tmp_path / "ds.py").write_text(DATASET)
    script = f"import ds\n{FORMS[form]}".encode()
    (tmp_path / "train.py").write_bytes(script)
    rows = made_by(tmp_path)
    for changes in WANTED.values():
        (tmp_path / "train.py").write_bytes(script)
        wanted = tuple(
            OperatorSetting(node=node, op_type=rows[node]["op_type"], place=rows[node]["site"], **change)
            for node, change in changes.items()
        )
        found = patch_of(Settings(operators=wanted), tmp_path, (), rows)
        if {one.why for one in found.by_hand} == {"same_line"}:  # of both maps
            continue
        applied(found)
        expected = [(row["name"], changes.get(row["node"], {}).get("workers", row["workers"])) for row in rows]
        expected.insert(changes.get(0, {}).get("maps_after", 0), expected.pop(0))
        assert [(row["name"], row["workers"]) for row in made_by(tmp_path)] == expected
