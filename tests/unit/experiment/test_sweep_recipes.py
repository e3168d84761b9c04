"""The sweeps of examples/sweeps: each can be read and explains each option; those of load_and_run are run."""

import re
from pathlib import Path

import pytest
from shebang import SHEBANG

from pipeprof.experiment.sweep.run import SweepWish, run_sweep
from pipeprof.experiment.sweep.spec import load_spec, read_spec
from pipeprof.record import document

RECIPES = sorted((Path(__file__).parents[3] / "examples" / "sweeps").glob("*.toml"))
# Refuses a model or a cache that is not there.
STAND_IN = f"""{SHEBANG}import pathlib, sys
words = sys.argv[1:]
if not pathlib.Path(words[0]).is_file():
    sys.exit("no such model " + words[0])
if "--layout-transform-dump" in words:
    pathlib.Path(words[words.index("--layout-transform-dump") + 1]).touch()
if "--fast-run-algo-policy" in words:
    cache = pathlib.Path(words[words.index("--fast-run-algo-policy") + 1])
    if "--fast-run" in words:
        cache.touch()
    elif not cache.is_file():
        sys.exit("no such cache")
print('''load model: 1.0ms
=== prepare: 5.846ms; going to warmup
warmup 0: 581.284ms
=== going to run input for 2 times
iter 0/2: 245.000ms (exec=10.574,device=242.226)
iter 1/2: 247.000ms (exec=10.574,device=242.226)
=== finished test #0: time=492.000ms avg_time=246.000ms sd=1.414ms minmax=245.000,247.000
''')
"""


def test_there_is_one_for_each_platform_and_every_variant_is_explained_and_can_be_read():
    assert [path.stem for path in RECIPES] == ["load_and_run_arm", "load_and_run_cuda", "load_and_run_x86", "mindspore"]
    for path in RECIPES:
        text, spec = path.read_text(encoding="utf-8"), load_spec(path)
        assert len(spec.variant) >= 5
        assert text.count("[[variant]]") == len(re.findall(r"^# .*\n\[\[variant\]\]", text, re.MULTILINE))
        assert any(variant.prepare for variant in spec.variant)


@pytest.mark.parametrize("path", RECIPES[:3], ids=lambda path: path.stem)
def test_caches_and_dumped_models_are_there_when_they_are_used(tmp_path, monkeypatch, path):
    program = tmp_path / "bin" / "load_and_run"
    program.parent.mkdir()
    program.write_text(STAND_IN, encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "model.mge").touch()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    content = document.decode(path.read_bytes()) | {"looks": [3]}
    found = run_sweep(SweepWish(read_spec(content, "recipe"), tmp_path, (), tmp_path / "out"), lambda _text: None)
    rows = found["tables"][0]["rows"]
    assert {row["name"]: row["failures"] for row in rows if row["failures"]} == {}
    assert {row["verdict"] for row in rows[1:]} == {"within noise"}
    prepared = {row["name"] for row in rows if row["prepare_s"] is not None}
    assert {"fast-run from a cache", "global layout, dumped model", "all that is recommended"} <= prepared


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x86", "--enable-nchw88 --fake-first"),
        ("arm", "--enable-nchw44 --enable-nchw44-dot --fake-first --cpu-default"),
        ("cuda", "--enable-nchw4 --enable-chwn4 --enable-nchw32 --enable-nchw64"),
    ],
)
def test_every_option_of_the_platform_is_tried(name, options):
    spec = load_spec(RECIPES[0].with_name(f"load_and_run_{name}.toml"))
    tried = {word for variant in spec.variant for word in (*(variant.command or ()), *variant.args)}
    everywhere = """
        --fast-run --full-run --fast-run-algo-policy --layout-transform --weight-preprocess --enable-fuse-preprocess
        --enable-fuse-conv-bias-nonlinearity --enable-fuse-conv-bias-with-z --record-comp-seq --record-comp-seq2
        --no-sanity-check"""
    assert {*everywhere.split(), *options.split()} <= tried
