"""Published tables of option sets as a result without repetitions."""

import pytest

from pipeprof.errors import MeasureError, SourceError
from pipeprof.experiment.sweep.table import read_option_table, table_content

HEAD = "table_id,row_in_table,platform,device,dtype,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms\n"
ROWS = """a,1,ARM,cpu,f32,slow set-up,--opt x,0,1000,500.0,,90.0
a,2,ARM,cpu,f32,tiny,--tiny,0,5,500.0,,99.8
a,3,ARM,cpu,f32,bad,,0,5,500.0,,150.0
a,4,ARM,cpu,f32,base,,1,5,500.0,,100.0
b,1,ARM,cpu,f32,twice,,0,5,30.0/410.0,,80.0
b,2,ARM,cpu,f32,twice,,0,5,----,,70.0
b,3,ARM,cpu,f32,base,,1,5,551.6/----,,101.0
"""


@pytest.fixture
def table(tmp_path):
    def call(rows=ROWS, steps=None):
        path = tmp_path / "table.csv"
        path.write_text(HEAD + rows)
        return table_content(path, steps)

    return call


def rows_of(content, name):
    found = next(table for table in content["tables"] if table["name"] == name)
    return {row["key"]: row for row in found["rows"]}


def test_words_come_from_the_spread_of_the_baselines(table):
    found = table()
    assert found["tables"][0]["noise"]["steady"] == pytest.approx(0.01)
    assert {row["name"]: row["verdict"] for row in rows_of(found, "a").values()} == {
        "slow set-up": "better", "tiny": "within noise", "bad": "worse", "base": "base",
    }  # fmt: skip


def test_break_even_is_in_steps(table):
    rows = rows_of(table(), "a")
    assert (rows["a/1"]["break_even"]["kind"], rows["a/1"]["break_even"]["steps"]) == ("after", 100)  # 995 / 10
    assert rows["a/2"]["break_even"]["kind"] == "not told apart"
    assert rows["a/3"]["break_even"]["kind"] == "never"


def test_rows_with_one_name_stay_apart(table):
    found = table()
    rows = rows_of(found, "b")
    assert [rows[key]["stages"]["steady"]["value"] for key in ("b/1", "b/2")] == [80e6, 70e6]


def test_cells_with_two_numbers_and_dashes(table):
    rows = rows_of(table(), "b")
    stages = [rows[key]["stages"] for key in ("b/1", "b/2", "b/3")]
    assert (stages[0]["warmup_first"]["value"], stages[0]["warmup_second"]["value"]) == (30e6, 410e6)
    assert "warmup_first" not in stages[1]
    assert "setup" not in stages[1]
    assert stages[2]["warmup_first"]["value"] == 551.6e6
    assert "warmup_second" not in stages[2]
    assert stages[0]["setup"]["value"] == 445e6


def test_the_number_of_steps_changes_the_choice(table):
    assert [table(steps=steps)["tables"][0]["best"]["name"] for steps in (10, 1000)] == ["base", "slow set-up"]


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
    found = table(ROWS[: ROWS.index("b,1")])
    assert found["tables"][0]["noise"]["steady"] == 0.0
    assert "no baseline was repeated" in found["tables"][0]["noise"]["from"]
    assert rows_of(found, "a")["a/2"]["verdict"] == "better"
    assert found["recommendation"]["name"] == "slow set-up"
    assert found["recommendation"]["options"] == {"args": ["--opt", "x"]}


@pytest.mark.parametrize(
    ("time", "base", "steps", "word"),
    [
        ("99.9", "100.0", None, "within noise"),  # 99.95 both
        ("99.90", "100.00", None, "better"),
        ("99", "100", None, "within noise"),
        ("98", "100", None, "better"),
        ("1.0e2", "105.0", None, "within noise"),
        ("99.9", "100.0", 1000, "within noise"),
        ("99.8", "100.0", 1000, "better"),
    ],
)
def test_rounding_is_that_of_both_figures_by_their_digits(table, time, base, steps, word):
    rows = f"a,1,ARM,cpu,f32,new,,0,5,500.0,,{time}\na,2,ARM,cpu,f32,base,,1,5,500.0,,{base}\n"
    found = table(rows, steps)["tables"][0]
    assert found["rows"][0]["stages"]["steady" if steps is None else "cost"]["verdict"] == word
    same = ["new" if found["best"]["name"] == "base" else "base"] if word == "within noise" else []
    assert found["best"]["not_told_apart"] == same


def test_rows_as_good_within_the_noise_are_listed(table):
    assert table()["tables"][0]["best"]["not_told_apart"] == []
    near = ROWS.replace("a,2,", "a,5,ARM,cpu,f32,near,,0,1000,500.0,,90.5\na,2,")
    assert table(near)["tables"][0]["best"]["not_told_apart"] == ["near"]


def test_a_table_without_one_baseline_is_refused(table, tmp_path):
    with pytest.raises(MeasureError, match="0 baselines"):
        table(ROWS.replace(",base,,1,", ",base,,0,"))
    with pytest.raises(MeasureError, match="no row"):
        table("")
    with pytest.raises(SourceError, match=r"table.csv`, line 2"):
        table("a,1,ARM,cpu,f32,x,,1,5,1/2/3,,100.0\n")
    with pytest.raises(SourceError, match="cannot read"):
        read_option_table(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0,,nan", "line 9.*nan"),
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0,,-1", "line 9.*-1"),
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0,,inf", "line 9.*inf"),
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0", "line 9.*cells"),
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0,,1.0,2.0", "line 9.*cells"),
        ("a,5,ARM,cpu,f32,odd,,0,5,500.0/3,4,1.0", "line 9.*two numbers"),
        ("a,1,ARM,cpu,f32,odd,,0,5,500.0,,1.0", "two rows of table `a`"),
    ],
)
@pytest.mark.parametrize("split", [True, False])
def test_rows_that_cannot_be_right_are_refused_by_line(table, row, said, split):
    rows = ROWS if split else ROWS.replace("30.0/410.0", "30.0").replace("----", "").replace("551.6/", "551.6")
    with pytest.raises(SourceError, match=said):
        table(rows + row + "\n")


def test_a_byte_order_mark_is_no_part_of_a_column(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + HEAD + ROWS[: ROWS.index("b,1")])
    assert len(read_option_table(path)) == 4


@pytest.mark.parametrize(
    ("column", "other"), [("model", "vgg16"), ("options", "--cpu"), ("batch_size", "64"), ("dtype", "int8")]
)
def test_baselines_of_unlike_settings_are_no_repetitions(tmp_path, column, other):
    """A baseline of 5 ms beside one of 50 ms of something else does not hide that a variant is slower by half."""
    head = "table_id,row_in_table,device,variant,is_baseline,inference_ms,dtype,model,batch_size,options\n"
    names = ("dtype", "model", "batch_size", "options")
    same = {"dtype": "f32", "model": "resnet50", "batch_size": "1", "options": ""}

    def content(second):
        tail = [",".join(settings[name] for name in names) for settings in (same, second)]
        rows = [f"a,1,gpu,base,1,5.0,{tail[0]}", f"a,2,gpu,slow,0,7.5,{tail[0]}", f"b,1,gpu,base,1,50.0,{tail[1]}"]
        path = tmp_path / "table.csv"
        path.write_text(head + "\n".join(rows) + "\n")
        return table_content(path)["tables"][0]

    pooled, apart = content(same), content(same | {column: other})
    assert (pooled["noise"]["steady"], pooled["rows"][1]["verdict"]) == (pytest.approx(9.0), "within noise")
    assert (apart["noise"]["steady"], apart["rows"][1]["verdict"]) == (0.0, "worse")
    assert "no baseline was repeated" in apart["noise"]["from"]


def test_remarks_are_no_settings(tmp_path):
    path = tmp_path / "table.csv"
    lines = [
        "table_id,row_in_table,variant,is_baseline,inference_ms,note",
        "a,1,base,1,5.0,first",
        "b,1,base,1,5.5,again",
    ]
    path.write_text("\n".join(lines) + "\n")
    assert [table["noise"]["steady"] for table in table_content(path)["tables"]] == [pytest.approx(0.1)] * 2


SHORT_HEAD = "table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms,note\n"


def test_other_columns_are_facts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        SHORT_HEAD + "a,1,chwn4,--x,0,1.5,2,,4,n\na,2,baseline,,1,1,1,,8,\nb,1,chwn4,,0,,,,,\n", encoding="utf-8"
    )
    rows = read_option_table(path)
    times = {"configure": 1.5e6, "warmup_first": 2e6, "steady": 4e6}
    assert (rows[0].name, rows[0].times, rows[0].facts) == ("chwn4", times, {"note": "n"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "no column table_id"),
        (SHORT_HEAD + "a,x,v,,0,,,,1,\n", "line 2"),
        (SHORT_HEAD + "a,1,v,,0,,,,one,\n", "line 2"),
        (SHORT_HEAD + "a,1,v,,0,,,,0e400,\n", "line 2"),
        ("", "nothing"),
        (SHORT_HEAD.replace("note", "inference_ms") + "a,1,v,,1,,,,1,2\n", "`inference_ms` is there twice"),
    ],
)
def test_a_damaged_table_is_an_error_with_its_place(tmp_path, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=said):
        read_option_table(path)
