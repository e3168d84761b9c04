"""What a stranger reads first: the first screen of real recordings."""

import shlex

import pytest
from archive import unpack
from copies import copy_tree

from pipeprof.cli.report import SECTIONS
from pipeprof.read.spool.finish import open_run
from pipeprof.report import markdown, terminal
from pipeprof.report.answer.screen import height
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import NAMES, first_lines
from tests.real.test_captures import CAPTURES
from tests.real.test_captures import NAMES as CAPTURED

ARCHIVES = CAPTURES.parent.parent / "accuracy" / "captures"
JUDGED = ["map_py", "source_poll", "map_burst", "source_folder", "loop_2ms", "drawn_20261122_00", "apart_batch"]
CAUSES = {
    "map_py": ("Input-bound", "The map `slow`", "computes in Python", "worker processes"),
    "source_poll": ("Input-bound", "The source `source`", "sleeps 100 ms", "Set num_parallel_workers of `source` to 1"),
    "map_burst": ("Input-bound", "The map `slow`", "stalls now and then", "worker processes"),
    "source_folder": ("Input-bound", "ImageFolderOp 3", "computes", "num_parallel_workers"),
    "loop_2ms": ("Not input-bound", "no operators were recorded", "record the operators"),
    "apart_batch": ("Input-bound", "The batch `collate`", "waiting", "num_parallel_workers"),
    "2.10-ranks": ("Communication takes", "waiting for another rank", "accumulate gradients"),
    "2.7-pynative": ("Host-bound", "operators per step, one by one", "ms.jit"),
    "2.10-graph": ("Input-bound", "The source `Source`", "num_parallel_workers", "only 11 batches"),
}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The report's content of a stored run; each is read once."""
    known = {}

    def content(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("run") / name
            if name in CAPTURED:
                copy_tree(CAPTURES / name, folder)
            else:
                folder.mkdir()
                unpack(ARCHIVES / f"{name}.tar.xz", folder)
            known[name] = build(open_run(folder))
        return known[name]

    return content


@pytest.mark.parametrize("name", [*CAPTURED, *JUDGED])
def test_it_fits_one_screen_and_says_nothing_twice(reported, name):
    lines = first_lines(reported(name))
    assert height(lines) <= 20
    assert max(len(line) for line in lines if not line.startswith("    '{")) <= 80
    said = [line for line in lines if line]
    assert len(said) == len(set(said))
    assert not {"RUN", "COMMAND", "None", "nan"} & set(" ".join(lines).replace(",", " ").split())


@pytest.mark.parametrize("name", [*CAPTURED, *JUDGED])
def test_the_next_command_is_complete(reported, name):
    content = reported(name)
    words = shlex.split(content["first_screen"]["next_command"])
    assert words[0] == "pipeprof"
    assert words[words.index("--") + 1 :] == content["run"]["command"]
    assert words[1] in ("headspace", "ab") or any(word.startswith(content["run"]["path"]) for word in words)


@pytest.mark.parametrize("name", CAUSES)
def test_a_stranger_reads_the_right_cause_and_action(reported, name):
    text = " ".join(" ".join(first_lines(reported(name))).split())
    assert [part for part in CAUSES[name] if part not in text] == []


@pytest.mark.parametrize("name", ["2.10-ranks", "map_py"])
def test_the_whole_report_begins_with_it_and_repeats_no_sentence(reported, name):
    content = reported(name)
    text = terminal.text(content)
    assert text.startswith("\n".join(first_lines(content)))
    sentences = [line for line in text.splitlines() if len(line) > 60 and line[0].isupper() and "  " not in line]
    assert len(sentences) == len(set(sentences))
    assert "-- COMMAND" not in text


@pytest.mark.parametrize("name", ["2.10-graph"])
def test_single_sections_are_what_the_whole_report_holds(reported, name):
    content = reported(name)
    whole = terminal.text(content)
    parts = [terminal.text(content, names=[section]) for section in NAMES]
    assert all(part.strip() in whole for part in parts)
    assert sum(bool(part.strip()) for part in parts) >= 6


def test_one_answer_in_every_format(reported):
    content = reported("2.10-graph")
    sentence = content["first_screen"]["sentence"]
    assert first_lines(content)[0] == sentence
    assert f"**{sentence}**" in markdown.text(content)


def test_the_command_line_offers_every_section():
    assert SECTIONS == NAMES
