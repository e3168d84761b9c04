"""Whatever is saved as a baseline comes back, and no changed byte is taken for what was saved."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeprof.errors import MeasureError, RunError
from pipeprof.record.baseline_files import MOST_BYTES, POINTER, decode, encode, read_document
from pipeprof.record.measures import Measures, Repetition

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
NUMBERS = st.floats(-1e300, 1e300)
ORDERS = st.integers(0, 2**62)


@st.composite
def measures(draw):
    reps = draw(
        st.dictionaries(
            st.integers(0, 50),
            st.builds(lambda order, job: Repetition(order=order, job=job), ORDERS, st.none() | TEXT),
            min_size=1,
            max_size=4,
        )
    )
    full = {"step_time_median": {rep: draw(NUMBERS) for rep in reps}}
    some = draw(st.dictionaries(NAMES, st.dictionaries(st.sampled_from(sorted(reps)), NUMBERS, min_size=1), max_size=4))
    return Measures(
        label=draw(TEXT),
        workload="w",
        kind="baseline",
        reps=dict(sorted(reps.items())),
        values=some | full,
        facts=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        fingerprint={"cpu_model": draw(TEXT), "cpu_cores": draw(st.none() | st.integers(1, 99)), "environment": {}},
        git=draw(st.none() | st.just({"revision": "r", "dirty": None})),
        created_at=draw(st.none() | TEXT),
        notes=draw(st.lists(st.fixed_dictionaries({"code": TEXT}), max_size=2)),
    )


def read(files):
    return decode(read_document(files[POINTER], POINTER), files.get, "w/m")


@settings(deadline=None, max_examples=100)
@given(measures())
def test_what_is_encoded_is_decoded(given_measures):
    files = encode(given_measures)
    assert read(files) == given_measures
    assert all(len(data) <= MOST_BYTES for data in files.values())
    mixed = msgspec.structs.replace(
        given_measures,
        reps=dict(reversed(given_measures.reps.items())),
        values={name: dict(reversed(found.items())) for name, found in reversed(given_measures.values.items())},
    )
    assert encode(mixed) == files


@settings(deadline=None, max_examples=100)
@given(measures(), st.data())
def test_a_changed_byte_is_refused_or_changes_nothing(given_measures, data):
    files = encode(given_measures)
    name = data.draw(st.sampled_from(sorted(files)))
    at = data.draw(st.integers(0, len(files[name]) - 1))
    changed = bytearray(files[name])
    changed[at] = data.draw(st.integers(0, 255).filter(lambda value: value != files[name][at]))
    try:
        found = read({**files, name: bytes(changed)})
    except RunError:
        return
    assert found == given_measures  # white space of baseline.json, or a line end


@settings(deadline=None, max_examples=100)
@given(measures(), st.data())
def test_a_cut_file_is_refused(given_measures, data):
    files = encode(given_measures)
    name = data.draw(st.sampled_from(sorted(files)))
    cut = files[name][: data.draw(st.integers(0, max(0, len(files[name]) - 3)))]
    with pytest.raises(RunError, match=name.replace(".", r"\.")):
        read({**files, name: cut})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_never_saved(value):
    given_measures = Measures(
        label="x", reps={0: Repetition(order=0)}, values={"a": {0: value}}, fingerprint={"cpu_model": "x"}
    )
    with pytest.raises(MeasureError, match="expected a finite number"):
        encode(given_measures)
