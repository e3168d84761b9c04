"""Whole epochs of real trainings: which changes keep the order of the rows, which only the rows, and which neither."""

import pytest

from pipeprof.errors import MeasureError, WorkloadError
from pipeprof.experiment.tune.bench import TuneBench
from pipeprof.experiment.tune.rows import compared_columns, compared_epochs
from pipeprof.record.settings_file import OperatorSetting, Settings

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]
HEAD = """import itertools

import numpy as np
from mindspore import dataset as ds

ds.config.set_seed(3)


class Rows:
    def __len__(self):
        return 42

    def __getitem__(self, index):
        return (np.full(4, index, np.float32),)


"""
TAIL = """
iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
for _ in range(2):
    for _ in iterator:
        pass
"""
PLAIN = "data = ds.GeneratorDataset(Rows(), ['x'], shuffle=True, num_parallel_workers=1)\n"
TEXTS = """
for number in range(2):
    with open(f"{number}.txt", "w") as file:
        file.writelines(f"row {100 * number + row}\\n" for row in range(30 - 20 * number))
data = ds.TextFileDataset([f"{number}.txt" for number in range(2)], shuffle=False, num_parallel_workers=1)
"""
LATER = """
rounds = itertools.count()


class Later(Rows):
    def __getitem__(self, index):
        return (np.full(4, index + (next(rounds) >= 42), np.float32),)


data = ds.GeneratorDataset(Later(), ["x"], shuffle=False, num_parallel_workers=1).batch(4)
"""


def operator(node, op_type, **change):
    return Settings(operators=(OperatorSetting(node=node, op_type=op_type, **change),))


# What stands between the source and the loop, the change, and what whole epochs say of it.
CASES = {
    "more workers of a map": (
        PLAIN + "data = data.map(lambda x: x + 1, ['x'], num_parallel_workers=1).batch(4)",
        operator(1, "MapOp", workers=2), "same",
    ),
    "two workers of a source": (
        PLAIN + "data = data.batch(4, drop_remainder=True)",
        operator(1, "GeneratorOp", workers=2, processes=False), "same",
    ),
    "a batch through a shuffle": (
        PLAIN + "data = data.map(lambda x: x[..., ::-1] + 1, ['x']).shuffle(16).batch(4)",
        operator(0, "BatchOp", maps_after=1), "same",
    ),
    "files by turns": (
        TEXTS + "data = data.batch(4)",
        operator(1, "TextFileOp", workers=2), "permuted",
    ),
    "files by turns, the rest dropped": (
        TEXTS + "data = data.batch(7, drop_remainder=True)",
        operator(1, "TextFileOp", workers=2), "other",
    ),
    "rows of two sources side by side": (
        TEXTS + "data = ds.zip((data, ds.GeneratorDataset(Rows(), ['x'], shuffle=False))).batch(4)",
        operator(2, "TextFileOp", workers=2), "other",
    ),
    "a map that counts its rows, in processes": (
        "calls = itertools.count()\n\n\ndef count(x):\n    return x + next(calls)\n\n\n"
        + PLAIN + "data = data.map(count, ['x'], num_parallel_workers=1).batch(4)",
        operator(1, "MapOp", workers=2, processes=True), "other",
    ),
    "a map that looks at its whole input": (
        PLAIN + "data = data.map(lambda x: x - x.mean(), ['x']).batch(4)",
        operator(0, "BatchOp", maps_after=1), "other",
    ),
    "a batch whose rows are repeated before it": (
        PLAIN + "data = data.map(lambda x: x + 1, ['x']).repeat(2).batch(4)",
        operator(0, "BatchOp", maps_after=1), MeasureError,
    ),
    "kept rows of a source that goes on": (
        LATER,
        operator(1, "GeneratorOp", cache=1 << 20), "other",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rows_of_whole_epochs(pipeprof_in, monkeypatch, name):
    pipeline, settings, expected = CASES[name]
    home = pipeprof_in("rows")
    (home.folder / "train.py").write_text(HEAD + pipeline + TAIL, encoding="utf-8")
    monkeypatch.chdir(home.folder)
    bench = TuneBench([home.python, "train.py"])
    plain = bench.rows(Settings(), home.folder / "original", None)
    assert len(plain) == 2
    assert all(one.whole for one in plain)
    if not isinstance(expected, str):
        with pytest.raises((expected, WorkloadError)):
            bench.rows(settings, home.folder / "rows", None)
        return
    found, why = compared_epochs(plain, bench.rows(settings, home.folder / "rows", None))
    assert (found, bool(why)) == (expected, expected == "other"), why


AUGMENTED = '''"""Pictures that are cropped and flipped at random, in C++; validated by an iterator of its own in between."""

import numpy as np
from mindspore import dataset as ds
from mindspore.dataset import vision

PICTURES = np.random.default_rng(0).integers(0, 255, (24, 12, 12, 3), dtype=np.uint8)
LABELS = np.arange(24, dtype=np.int32) % 3


def made(pictures, labels):
    data = ds.NumpySlicesDataset((pictures, labels), ["x", "y"], shuffle=True)
    data = data.map([vision.RandomCrop(8), vision.RandomHorizontalFlip()], ["x"], num_parallel_workers=1)
    return data.batch(4, num_parallel_workers=1)


train, valid = made(PICTURES, LABELS), made(PICTURES[:8], LABELS[:8])
for _ in range(2):
    for x, y in train.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass
    for x, y in valid.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass
'''
READ = "    for x, y in train"


@pytest.fixture(scope="module")
def augmented(pipeprof_in):
    """`augmented(name, **options)`: whole epochs of that training, with settings of one operator if there are any."""
    home = pipeprof_in("augmented")
    script = home.folder / "train.py"
    script.write_text(AUGMENTED, encoding="utf-8")
    line = next(number for number, text in enumerate(AUGMENTED.splitlines(), 1) if text.startswith(READ))
    bench = TuneBench([home.python, str(script)])

    def settings(*operators):
        return Settings(site=f"{script}:{line}", operators=operators)

    return bench, settings, home.folder


def test_what_random_operations_draw_is_told_from_labels(augmented):
    bench, settings, folder = augmented
    two_workers = OperatorSetting(node=1, op_type="MapOp", workers=2)
    original = bench.rows(settings(), folder / "original", None)
    seeded = bench.rows(settings(), folder / "seeded", None, other_seed=True)
    drawn = bench.rows(settings(two_workers), folder / "drawn", None)
    assert [(one.batches, one.rows) for one in original] == [(6, 24), (6, 24)]
    assert compared_epochs(original, drawn)[0] == "other"
    said = "random operations draw other numbers in column 1; all else in the epochs is the same"
    assert compared_columns(original, seeded, drawn, order=False) == ("random", said)
    steady = [one.is_like(other) for one, other in zip(original[0].columns, seeded[0].columns, strict=True)]
    assert steady == [False, True]


def test_a_pair_shows_the_batches_of_the_training_alone_on_both_sides(augmented):
    """A loop that validates hands out those rows, too."""
    bench, settings, folder = augmented
    changed = settings(OperatorSetting(node=0, op_type="BatchOp", workers=2))
    first, second = (
        bench.run(one, folder / "pair", (side, 0), None) for side, one in zip("ab", [settings(), changed], strict=True)
    )
    assert first.batches == second.batches
    assert len(first.batches) == 12
