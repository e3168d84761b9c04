"""The whole run in parts, from the parts that were recorded."""

from query_cases import answers, rows

test_rows_of_run_account = answers("run/account", {
    "parts have their share of the rank and null is empty": ("rank part detail cause count start_ns dur_ns share",
        {"run_part": rows("part detail cause count start_ns dur_ns rank", ("training", None, None, 9, 40, 60, None),
                          ("callback", "Watcher", None, 2, 50, 15, None),
                          ("recompile", "Net", "short_batch", 1, 90, 25, None), ("training", None, None, 1, 0, 7, 1))},
        [(0, "callback", "Watcher", "", 2, 50, 15, 0.15), (0, "recompile", "Net", "short_batch", 1, 90, 25, 0.25),
         (0, "training", "", "", 9, 40, 60, 0.6), (1, "training", "", "", 1, 0, 7, 1.0)]),
    "a part without a name is not recorded and one without a length is none": ("part count dur_ns",
        {"run_part": [{"dur_ns": 7, "start_ns": 1}, {"part": "training", "count": 3}]}, [("not_recorded", 0, 7)]),
})  # fmt: skip
