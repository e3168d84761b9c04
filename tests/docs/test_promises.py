"""Every sentence of the pages about security names a test that is there, and the limits are those of the program."""

from every import every
from play import ROOT
from promises import PAGES, Held, held, missing, names_of_tests, sentences

from pipeprof.experiment import policy_file
from pipeprof.query import engine
from pipeprof.read import benchmarks
from pipeprof.read.spool import lines
from pipeprof.record import document, limits, pages, place, plain_file, run

MIB = 1 << 20


def found():
    return [one for page in PAGES for one in sentences(page)]


def test_every_sentence_names_a_test():
    assert missing(held(), found()) == []


def test_every_test_that_is_named_is_there():
    named = {test for row in held() for test in row.tests}
    absent = []
    for test in named:
        path, _, name = test.partition("::")
        file = ROOT / "tests" / path
        if not file.is_file() or name not in names_of_tests(file):
            absent.append(test)
    assert absent == []
    assert all(row.tests for row in held())


def test_a_sentence_without_a_test_and_a_row_without_a_sentence_are_noticed():
    page = "# A\n\nIt does this. It does\nthat, too.\n\n- **An item.** And `a. B` more.\n\n| what | how |\n|---|---|\n| x | y |\n"
    texts = [one.text for one in sentences("page", page)]
    assert texts == ["It does this.", "It does that, too.", "An item.", "And a. B more.", "x | y"]
    rows = [
        Held("It does this.", ("t",)),
        Held("An item", ("t",)),
        Held("And", ("t",)),
        Held("gone", ("t",)),
        Held("It", ("t",)),
    ]
    wrong = missing(rows[:4], sentences("page", page))
    assert wrong == ["no test: It does that, too.", "no test: x | y", "0 sentences begin with: gone"]
    assert "2 sentences begin with: It" in missing(rows, sentences("page", page))


def shown(size):
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power:,} {unit}"
    return f"{size // 1000} kB" if size % 1000 == 0 else f"{size:,}"


LIMITS = {
    "a file that is streamed": [shown(plain_file.MOST)],
    "what a compressed file": [
        shown(limits.most_unpacked(0)),
        f"{limits.most_unpacked(MIB << 20) // (MIB << 20)} times",
    ],
    "run.json": [shown(run.MOST_BYTES)],
    "a file of a spool": [shown(lines.MOST_BYTES)],
    "a file with holes that is read whole": [shown(limits.most_with_holes(0)), "100 times"],
    "a file of a baseline; its history": [shown(place.MOST_READ), shown(place.MOST_HISTORY)],
    "policy; pytest-benchmark file": [shown(policy_file.MOST_BYTES), shown(benchmarks.MOST_BYTES)],
    "rows of a table of a run": [f"{limits.most_rows(0):,}", "or 4 for each byte"],
    "rows of one group": [f"{pages.MOST_OF_GROUP:,}"],
    "what one group of a Parquet file unpacks to": [shown(limits.most_memory()), "a baseline 64 MiB"],
    "rows of one table made": [f"{limits.most_imported_rows():,}", f"{limits.most_imported_rows(in_memory=True):,}"],
    "time to read one file": ["an hour"],
    "memory of a query": [shown(limits.most_memory())],
    "what a query writes to the temporary folder |": [f"{limits.most_spilled() >> 20:,} MiB"],
    "time of one query": [f"{limits.most_query_seconds()} s"],
    "values of a JSON document": [f"{document._VALUE} bytes for each, {document._OBJECT} for an object"],
    "everything that your own SQL": [f"{engine._MEMORY_TIMES * limits.most_memory() >> 20:,} MiB"],
    "an answer": [f"{2 * limits.most_memory() >> 20:,} MiB", f"{limits.most_memory() // engine._ROW_BYTES:,} rows"],
}


@every(LIMITS)
def test_the_limits_of_the_page_are_those_of_the_program(words):
    (row,) = [
        one.text
        for one in sentences("docs/limits.md")
        if one.text.startswith(words) and " | " in one.text and "::" not in one.text
    ]
    assert limits.most_seconds() == 3600
    assert [figure for figure in LIMITS[words] if figure not in row] == []
