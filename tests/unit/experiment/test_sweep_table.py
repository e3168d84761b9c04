"""Published tables of option sets as a result without repetitions."""

import pytest

from pipeprof.errors import MeasureError, SourceError
from pipeprof.experiment.sweep.table import read_option_table, table_content

HEAD = (
    "table_id,row_in_table,platform,device,dtype,variant,options,is_baseline,"
    "configure_ms,warmup_first_ms,warmup_second_ms,inference_ms\n"
)
ROWS = """a,1,ARM,cpu,f32,slow set-up,--opt x,0,1000,500.0,,90.0
a,2,ARM,cpu,f32,tiny,--tiny,0,5,500.0,,99.8
a,3,ARM,cpu,f32,bad,,0,5,500.0,,150.0
a,4,ARM,cpu,f32,base,,1,5,500.0,,100.0
b,1,ARM,cpu,f32,twice,,0,5,30.0/410.0,,80.0
b,2,ARM,cpu,f32,twice,,0,5,----,,70.0
b,3,ARM,cpu,f32,base,,1,5,551.6/----,,101.0
"""
ONE_TABLE = ROWS[: ROWS.index("b,1")]
SHORT_HEAD = HEAD.replace("platform,device,dtype,", "").replace("inference_ms", "inference_ms,note")


@pytest.fixture
def path(tmp_path):
    """`path(text)`: a file of it."""

    def write(text):
        (tmp_path / "table.csv").write_text(text, encoding="utf-8")
        return tmp_path / "table.csv"

    return write


@pytest.fixture
def table(path):
    return lambda rows=ROWS, steps=None: table_content(path(HEAD + rows), steps)


def rows_of(content, name):
    found = next(table for table in content["tables"] if table["name"] == name)
    return {row["key"]: row for row in found["rows"]}


def test_words_come_from_the_spread_of_the_baselines(table):
    found = table()
    assert found["tables"][0]["noise"]["steady"] == pytest.approx(0.01)
    verdicts = [(row["name"], row["verdict"]) for row in rows_of(found, "a").values()]
    assert verdicts == [("slow set-up", "better"), ("tiny", "within noise"), ("bad", "worse"), ("base", "base")]


def test_break_even_is_in_steps(table):
    even = {key: row["break_even"] for key, row in rows_of(table(), "a").items()}
    assert (even["a/1"]["kind"], even["a/1"]["steps"]) == ("after", 100)  # 995 / 10
    assert (even["a/2"]["kind"], even["a/3"]["kind"]) == ("not told apart", "never")
    assert [table(steps=steps)["tables"][0]["best"]["name"] for steps in (10, 1000)] == ["base", "slow set-up"]


def test_rows_with_one_name_stay_apart_and_cells_may_have_two_numbers_and_dashes(table):
    rows = rows_of(table(), "b")
    first, second, third = ({stage: one["value"] for stage, one in row["stages"].items()} for row in rows.values())
    assert list(rows) == ["b/1", "b/2", "b/3"]
    assert (first["warmup_first"], first["warmup_second"], first["setup"]) == (30e6, 410e6, 445e6)
    assert (first["steady"], second["steady"]) == (80e6, 70e6)
    assert not {"warmup_first", "setup"} & set(second)
    assert third["warmup_first"] == 551.6e6
    assert "warmup_second" not in third


def test_without_set_up_times_it_says_why_no_row_is_best_for_a_number_of_steps(table):
    found = table("a,1,ARM,cpu,f32,fast,,0,,,,90.0\na,2,ARM,cpu,f32,base,,1,,,,100.0\n", steps=100)
    assert (found["recommendation"], found["note_facts"][-1]["code"]) == (None, "no_cost")
    assert "set-up" in found["notes"][-1]
    assert "no_cost" not in [one["code"] for one in table(steps=100)["note_facts"]]


@pytest.mark.parametrize("steps", [None, 0])
def test_times_of_zero_are_compared(table, steps):
    rows = "a,1,ARM,cpu,f32,none,,0,0,0,,0.0\na,2,ARM,cpu,f32,too,,0,0,0,,0.0\na,3,ARM,cpu,f32,base,,1,5,5,,1.0\n"
    best = table(rows, steps)["tables"][0]["best"]
    assert (best["name"], best["value"], best["not_told_apart"]) == ("none", 0.0, ["too"])


def test_without_a_repeated_baseline_only_rounding_is_known(table):
    found = table(ONE_TABLE)
    noise = found["tables"][0]["noise"]
    assert (noise["steady"], "no baseline was repeated" in noise["from"]) == (0.0, True)
    assert rows_of(found, "a")["a/2"]["verdict"] == "better"
    assert found["recommendation"]["name"] == "slow set-up"
    assert found["recommendation"]["options"] == {"args": ["--opt", "x"]}


@pytest.mark.parametrize(
    ("time", "base", "steps", "word"),
    [
        ("99.9", "100.0", None, "within noise"),  # 99.95 both
        ("99.90", "100.00", None, "better"), ("99", "100", None, "within noise"), ("98", "100", None, "better"),
        ("1.0e2", "105.0", None, "within noise"), ("99.9", "100.0", 1000, "within noise"),
        ("99.8", "100.0", 1000, "better"),
    ],
)  # fmt: skip
def test_rounding_is_that_of_both_figures_by_their_digits(table, time, base, steps, word):
    rows = f"a,1,ARM,cpu,f32,new,,0,5,500.0,,{time}\na,2,ARM,cpu,f32,base,,1,5,500.0,,{base}\n"
    found = table(rows, steps)["tables"][0]
    assert found["rows"][0]["stages"]["steady" if steps is None else "cost"]["verdict"] == word
    same = ["new" if found["best"]["name"] == "base" else "base"] if word == "within noise" else []
    assert found["best"]["not_told_apart"] == same


def test_rows_as_good_within_the_noise_are_listed(table):
    near = ROWS.replace("a,2,", "a,5,ARM,cpu,f32,near,,0,1000,500.0,,90.5\na,2,")
    assert [table(rows)["tables"][0]["best"]["not_told_apart"] for rows in (ROWS, near)] == [[], ["near"]]


ODD = "a,5,ARM,cpu,f32,odd,,0,5,500.0"
SPLIT = ROWS.replace("30.0/410.0", "30.0").replace("----", "").replace("551.6/", "551.6")


@pytest.mark.parametrize("rows", [ROWS, SPLIT])
@pytest.mark.parametrize(
    ("row", "said"),
    [
        (f"{ODD},,nan", "line 9.*nan"), (f"{ODD},,-1", "line 9.*-1"), (f"{ODD},,inf", "line 9.*inf"),
        (ODD, "line 9.*cells"), (f"{ODD},,1.0,2.0", "line 9.*cells"), (f"{ODD}/3,4,1.0", "line 9.*two numbers"),
        (f"{ODD.replace('a,5', 'a,1')},,1.0", "two rows of table `a`"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_right_are_refused_by_line(table, row, said, rows):
    with pytest.raises(SourceError, match=said):
        table(rows + row + "\n")


def test_a_byte_order_mark_is_no_part_of_a_column(path):
    assert len(read_option_table(path("\ufeff" + HEAD + ONE_TABLE))) == 4


@pytest.mark.parametrize(
    ("column", "other"), [("model", "vgg16"), ("options", "--cpu"), ("batch_size", "64"), ("dtype", "int8")]
)
def test_baselines_of_unlike_settings_are_no_repetitions(path, column, other):
    """A baseline of 5 ms beside one of 50 ms of something else does not hide that a variant is slower by half."""
    same = {"dtype": "f32", "model": "resnet50", "batch_size": "1", "options": ""}

    def content(second):
        first, second = (",".join(settings.values()) for settings in (same, second))
        rows = [f"a,1,gpu,base,1,5.0,{first}", f"a,2,gpu,slow,0,7.5,{first}", f"b,1,gpu,base,1,50.0,{second}"]
        head = f"table_id,row_in_table,device,variant,is_baseline,inference_ms,{','.join(same)}"
        return table_content(path("\n".join([head, *rows]) + "\n"))["tables"][0]

    pooled, apart = content(same), content(same | {column: other})
    assert (pooled["noise"]["steady"], pooled["rows"][1]["verdict"]) == (pytest.approx(9.0), "within noise")
    assert (apart["noise"]["steady"], apart["rows"][1]["verdict"]) == (0.0, "worse")
    assert "no baseline was repeated" in apart["noise"]["from"]


def test_remarks_are_no_settings(path):
    head = "table_id,row_in_table,variant,is_baseline,inference_ms,note\n"
    content = table_content(path(f"{head}a,1,base,1,5.0,first\nb,1,base,1,5.5,again\n"))
    assert [table["noise"]["steady"] for table in content["tables"]] == [pytest.approx(0.1)] * 2


def test_other_columns_are_facts(path):
    lines = "a,1,chwn4,--x,0,1.5,2,,4,n\na,2,baseline,,1,1,1,,8,\nb,1,chwn4,,0,,,,,\n"
    first = read_option_table(path(SHORT_HEAD + lines))[0]
    times = {"configure": 1.5e6, "warmup_first": 2e6, "steady": 4e6}
    assert (first.name, first.times, first.facts) == ("chwn4", times, {"note": "n"})


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (HEAD + ROWS.replace(",base,,1,", ",base,,0,"), MeasureError, "0 baselines"), (HEAD, MeasureError, "no row"),
        (HEAD + "a,1,ARM,cpu,f32,x,,1,5,1/2/3,,100.0\n", SourceError, r"table.csv`, line 2"),
        ("a,b\n1,2\n", SourceError, "no column table_id"), (SHORT_HEAD + "a,x,v,,0,,,,1,\n", SourceError, "line 2"),
        (SHORT_HEAD + "a,1,v,,0,,,,one,\n", SourceError, "line 2"),
        (SHORT_HEAD + "a,1,v,,0,,,,0e400,\n", SourceError, "line 2"), ("", SourceError, "nothing"),
        (SHORT_HEAD.replace("note", "inference_ms") + "a,1,v,,1,,,,1,2\n", SourceError, "`inference_ms` .* twice"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_an_error_with_its_place(path, text, error, said):
    with pytest.raises(error, match=said):
        table_content(path(text))


def test_a_table_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="cannot read"):
        read_option_table(tmp_path / "none.csv")
