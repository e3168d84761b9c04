"""What a sweep's file may hold, and which variants follow from it."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.sweep.plan import PhaseResult, next_phase
from pipeprof.experiment.sweep.spec import load_spec, read_spec, seconds_of

ONE = {"name": "one", "env": {"A": "1"}}
CHANGE = {"op": "Map", "workers": 2}


def read(**content):
    return read_spec({"variant": [ONE]} | content, "`s.toml`")


def test_a_whole_file_is_read(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'search = "list"\nbudget = "1h30m"\ntimeout = 20\n[base.env]\nA = "0"\n[[variant]]\nname = "x"\n'
        'args = ["--lr", "1"]\ndataset = {op = "Map", nth = 2, workers = 4, processes = true}\n'
        'context = {mode = "graph", jit_level = "O1", threads = 2}\n[rules.steady]\nmin_effect = 0.1\n'
    )
    spec = load_spec(path)
    assert [seconds_of(limit, "") for limit in (spec.budget, spec.timeout)] == [5400.0, 20.0]
    assert spec.variant[0].dataset.nth == 2
    assert spec.variant[0].context.jit_level == "O1"
    assert (spec.rule("steady").min_effect, spec.rule("steady").margin) == (0.1, 0.03)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"varant": []}, "varant"),
        ({"variant": [ONE | {"enw": {}}]}, "enw"),
        ({"variant": [ONE, ONE]}, "`one`"),
        ({"variant": [ONE | {"name": "base"}]}, "other than `base`"),
        ({"variant": [{"name": "x"}]}, "changes nothing"),
        ({"variant": []}, "no `[[variant]]`"),
        ({"variant": [{"name": "x", "dataset": {"op": "Map"}}]}, "sets none"),
        ({"variant": [{"name": "x", "dataset": {"op": "Map", "workers": 0}}]}, "1 or more"),
        ({"variant": [{"name": "x", "env": {"1A": "x"}}]}, "1A"),
        ({"variant": [{"name": "x", "context": {"mode": "fast"}}]}, "mode"),
        ({"looks": [5, 3]}, "growing"),
        ({"looks": [2]}, "from 3 on"),
        ({"looks": [5, 10**12]}, "at most 1000"),
        ({"alpha": 0.5}, "alpha"),
        ({"judge": "speed"}, "`speed`"),
        ({"search": "random"}, "search"),
        ({"search": "grid"}, "axis"),
        ({"axis": [{"option": [ONE]}]}, "`axis`"),
        ({"search": "grid", "variant": [], "axis": [{"option": [ONE | {"name": "base"}]}]}, "needs a name, other than"),
        ({"search": "grid", "variant": [], "axis": [{"option": [ONE | {"name": " "}]}]}, "needs a name"),
        ({"addition": [ONE | {"name": "y"}]}, "`addition`"),
        ({"budget": "soon"}, "`budget`"),
        ({"timeout": -1}, "`timeout`"),
        ({"timeout": "9" * 400}, "`timeout`"),
        ({"rules": {"speed": {}}}, "`rules`"),
        ({"measure": "regex"}, "stages.steady"),
        ({"stages": {"steady": {"pattern": "(.)"}}}, 'measure = "regex"'),
        ({"measure": "regex", "stages": {"steady": {"pattern": "x"}}}, "group"),
        ({"measure": "regex", "stages": {"steady": {"pattern": "("}}}, "regular expression"),
        ({"measure": "regex", "stages": {"steady": {"pattern": "(a{9999999999})"}}}, "regular expression"),
        ({"measure": "regex", "stages": {"steady": {"pattern": "(.)", "unit": "h"}}}, "`unit`"),
        ({"measure": "regex", "stages": {"speed": {"pattern": "(.)"}}}, "`stages` may hold"),
        ({"measure": "regex", "judge": "total", "stages": {"speed": {"pattern": "(.)"}}}, "`stages` may hold"),
        ({"measure": "regex", "judge": "setup", "stages": {"steady": {"pattern": "(.)"}}}, "stages.setup"),
        ({"rules": {"steady": {"min_effect": -0.1}}}, "`min_effect` of `rules.steady`"),
        ({"rules": {"steady": {"margin": float("inf")}}}, "`margin` of `rules.steady`"),
        ({"rules": {"steady": {"floor": float("nan")}}}, "`floor` of `rules.steady`"),
        ({"variant": [ONE | {"name": "a\nb"}]}, "one line"),
        ({"variant": [ONE | {"name": "  "}]}, "needs a name"),
        ({"variant": [{"name": "x", "args": ["a\0b"]}]}, "zero byte"),
        ({"variant": [{"name": "x", "env": {"A": "a\0b"}}]}, "zero byte"),
        ({"variant": [{"name": "x", "dataset": {"op": "", "workers": 2}}]}, "`op`"),
        ({"measure": "load_and_run", "variant": [{"name": "x", "dataset": CHANGE}]}, 'measure = "run"'),
    ],
)
def test_what_is_wrong_is_named_with_its_file(content, said):
    with pytest.raises(UsageError) as caught:
        read(**content)
    assert said in caught.value.message
    assert "`s.toml`" in caught.value.message


def test_files_that_are_no_toml_or_not_there(tmp_path):
    path = tmp_path / "s.toml"
    with pytest.raises(UsageError, match="cannot read"):
        load_spec(path)
    path.write_text("a = ")
    with pytest.raises(UsageError, match="is not TOML"):
        load_spec(path)


def test_times():
    assert [seconds_of(value, "x") for value in (None, 90, 1.5, "90", "90s", "1m30s")] == [None, 90, 1.5, 90, 90, 90]


def test_a_grid_joins_options_of_one_operator_and_refuses_two():
    def grid(other):
        axes = [
            {"option": [{"name": "w2", "dataset": CHANGE}]},
            {"option": [{"name": "p4", "dataset": {"op": other, "prefetch": 4}}]},
        ]
        return next_phase(read(variant=[], search="grid", axis=axes), ())

    both = grid("Map").arms[-1]
    assert (both.name, both.options.dataset.workers, both.options.dataset.prefetch) == ("w2 + p4", 2, 4)
    with pytest.raises(UsageError, match="two dataset operators"):
        grid("Batch")


def test_what_a_variant_says_goes_before_the_base():
    base = {"env": {"A": "0", "B": "0"}, "args": ["-q"], "context": {"mode": "graph", "threads": 2}}
    variant = ONE | {"args": ["-v"], "context": {"threads": 1}}
    arm = next_phase(read(base=base, variant=[variant]), ()).arms[1]
    assert arm.options.env == {"A": "1", "B": "0"}
    assert arm.options.args == ("-q", "-v")
    assert (arm.options.context.mode, arm.options.context.threads) == ("graph", 1)
    assert arm.facts() == {"env": {"A": "1"}, "args": ["-v"], "context": {"threads": 1}}


def test_an_addition_to_a_variant_may_not_have_the_name_of_another_one():
    variants = [{"name": name, "env": {"A": name}} for name in ("one", "one + two")]
    spec = read(search="greedy", variant=variants, addition=[{"name": "two", "env": {"B": "1"}}])
    with pytest.raises(UsageError, match=r"two variants would have the name `one \+ two`"):
        next_phase(spec, ())


def test_phases_of_a_greedy_search():
    spec = read(search="greedy", addition=[{"name": "two", "env": {"B": "1"}}])
    assert [arm.name for arm in next_phase(spec, ()).arms] == ["base", "one"]
    assert next_phase(spec, ()).alpha == pytest.approx(spec.alpha / 3)
    won = [PhaseResult("one")]
    assert [arm.name for arm in next_phase(spec, won).arms] == ["one", "one + two"]
    assert [arm.name for arm in next_phase(spec, [*won, PhaseResult("one + two")]).arms] == ["base", "one + two"]
    assert [arm.name for arm in next_phase(spec, [*won, PhaseResult(None)]).arms] == ["base", "one"]
    assert next_phase(spec, [PhaseResult(None), PhaseResult(None)]) is None
    assert next_phase(spec, [PhaseResult(None, is_complete=False)]) is None
    assert next_phase(spec, [*won, PhaseResult(None), PhaseResult("one")]) is None
    bare = read(search="greedy")
    assert [arm.name for arm in next_phase(bare, won).arms] == ["base", "one"]
    assert next_phase(bare, [PhaseResult(None)]) is None
