"""What a sweep's file may hold, and which variants follow from it."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.sweep.plan import PhaseResult, next_phase
from pipeprof.experiment.sweep.spec import load_spec, read_spec, seconds_of

ONE, TWO = {"name": "one", "env": {"A": "1"}}, {"name": "two", "env": {"B": "1"}}
CHANGE = {"op": "Map", "workers": 2}


def read(**content):
    return read_spec({"variant": [ONE]} | content, "`s.toml`")


def arms(spec, *done):
    return [arm.name for arm in next_phase(spec, done).arms]


def test_a_whole_file_is_read(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'search = "list"\nbudget = "1h30m"\ntimeout = 20\n[base.env]\nA = "0"\n[[variant]]\nname = "x"\n'
        'args = ["--lr", "1"]\ndataset = {op = "Map", nth = 2, workers = 4, processes = true}\n'
        'context = {mode = "graph", jit_level = "O1", threads = 2}\n[rules.steady]\nmin_effect = 0.1\n'
    )
    spec = load_spec(path)
    assert [seconds_of(limit, "") for limit in (spec.budget, spec.timeout)] == [5400.0, 20.0]
    assert (spec.variant[0].dataset.nth, spec.variant[0].context.jit_level) == (2, "O1")
    assert (spec.rule("steady").min_effect, spec.rule("steady").margin) == (0.1, 0.03)


def variant(**of):
    return {"variant": [{"name": "x"} | of]}


def option(name):
    return {"search": "grid", "variant": [], "axis": [{"option": [ONE | {"name": name}]}]}


def regex(stage="steady", pattern="(.)", unit="ms", **more):
    return {"measure": "regex", "stages": {stage: {"pattern": pattern, "unit": unit}}} | more


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"varant": []}, "varant"), (variant(**ONE, enw={}), "enw"), ({"variant": [ONE, ONE]}, "`one`"),
        (variant(**ONE | {"name": "base"}), "other than `base`"), (variant(), "changes nothing"),
        ({"variant": []}, "no `[[variant]]`"), (variant(dataset={"op": "Map"}), "sets none"),
        (variant(dataset={"op": "Map", "workers": 0}), "1 or more"), (variant(env={"1A": "x"}), "1A"),
        (variant(context={"mode": "fast"}), "mode"), ({"looks": [5, 3]}, "growing"), ({"looks": [2]}, "from 3 on"),
        ({"looks": [5, 10**12]}, "at most 1000"), ({"alpha": 0.5}, "alpha"), ({"judge": "speed"}, "`speed`"),
        ({"search": "random"}, "search"), ({"search": "grid"}, "axis"), ({"axis": [{"option": [ONE]}]}, "`axis`"),
        (option("base"), "needs a name, other than"), (option(" "), "needs a name"),
        ({"addition": [ONE | {"name": "y"}]}, "`addition`"), ({"budget": "soon"}, "`budget`"),
        ({"timeout": -1}, "`timeout`"), ({"timeout": "9" * 400}, "`timeout`"), ({"rules": {"speed": {}}}, "`rules`"),
        ({"measure": "regex"}, "stages.steady"), (regex(measure="run"), 'measure = "regex"'),
        (regex(pattern="x"), "group"), (regex(pattern="("), "regular expression"),
        (regex(pattern="(a{9999999999})"), "regular expression"), (regex(unit="h"), "`unit`"),
        (regex("speed"), "`stages` may hold"), (regex("speed", judge="total"), "`stages` may hold"),
        (regex(judge="setup"), "stages.setup"),
        ({"rules": {"steady": {"min_effect": -0.1}}}, "`min_effect` of `rules.steady`"),
        ({"rules": {"steady": {"margin": float("inf")}}}, "`margin` of `rules.steady`"),
        ({"rules": {"steady": {"floor": float("nan")}}}, "`floor` of `rules.steady`"),
        (variant(**ONE | {"name": "a\nb"}), "one line"), (variant(**ONE | {"name": "  "}), "needs a name"),
        (variant(args=["a\0b"]), "zero byte"), (variant(env={"A": "a\0b"}), "zero byte"),
        (variant(dataset={"op": "", "workers": 2}), "`op`"),
        (variant(dataset=CHANGE) | {"measure": "load_and_run"}, 'measure = "run"'),
    ],
)  # fmt: skip
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
        options = [{"name": "w2", "dataset": CHANGE}, {"name": "p4", "dataset": {"op": other, "prefetch": 4}}]
        return next_phase(read(variant=[], search="grid", axis=[{"option": [one]} for one in options]), ())

    both = grid("Map").arms[-1]
    assert (both.name, both.options.dataset.workers, both.options.dataset.prefetch) == ("w2 + p4", 2, 4)
    with pytest.raises(UsageError, match="two dataset operators"):
        grid("Batch")


def test_what_a_variant_says_goes_before_the_base():
    base = {"env": {"A": "0", "B": "0"}, "args": ["-q"], "context": {"mode": "graph", "threads": 2}}
    arm = next_phase(read(base=base, variant=[ONE | {"args": ["-v"], "context": {"threads": 1}}]), ()).arms[1]
    assert (arm.options.env, arm.options.args) == ({"A": "1", "B": "0"}, ("-q", "-v"))
    assert (arm.options.context.mode, arm.options.context.threads) == ("graph", 1)
    assert arm.facts() == {"env": {"A": "1"}, "args": ["-v"], "context": {"threads": 1}}


def test_an_addition_to_a_variant_may_not_have_the_name_of_another_one():
    variants = [{"name": name, "env": {"A": name}} for name in ("one", "one + two")]
    with pytest.raises(UsageError, match=r"two variants would have the name `one \+ two`"):
        next_phase(read(search="greedy", variant=variants, addition=[TWO]), ())


def test_phases_of_a_greedy_search():
    spec, bare = read(search="greedy", addition=[TWO]), read(search="greedy")
    won, none = PhaseResult("one"), PhaseResult(None)
    assert arms(spec) == ["base", "one"]
    assert next_phase(spec, ()).alpha == pytest.approx(spec.alpha / 3)
    assert arms(spec, won) == ["one", "one + two"]
    assert arms(spec, won, PhaseResult("one + two")) == ["base", "one + two"]
    assert arms(spec, won, none) == arms(bare, won) == ["base", "one"]
    assert arms(spec, none) == arms(spec, none, PhaseResult("two")) == ["base", "two"]
    for one, done in ((spec, [none, none]), (spec, [PhaseResult(None, is_complete=False)]), (bare, [none])):
        assert next_phase(one, done) is None
    assert next_phase(spec, [won, none, PhaseResult("one")]) is None
