"""The designed pipelines, by what holds them up. Their labels come from `labels.label`, not from here."""

from __future__ import annotations

from pipelines import Batch, Branch, Consumer, Map, Pipeline, Source, Work, burst, py, sort, vision, wait


def chain(name: str, work: Work, *maps: Map, **options: object) -> Pipeline:
    """One branch. Options of the source (form, workers, processes), branch (keep, shuffle) and pipeline."""
    source = {key: options.pop(key) for key in ("form", "workers", "processes") if key in options}
    branch = {key: options.pop(key) for key in ("keep", "shuffle") if key in options}
    return Pipeline(name, (Branch(Source(work=work, **source), maps, **branch),), **options)  # type: ignore[arg-type]


def two(name: str, join: str, left: Branch, right: Branch, **options: object) -> Pipeline:
    """Two branches, joined."""
    return Pipeline(name, (left, right), join, **options)  # type: ignore[arg-type]


def cheap(name: str = "cheap") -> Map:
    """A map that is never the bottleneck."""
    return Map(name, sort(0.3))


def sources() -> list[Pipeline]:
    """The source is slow."""
    picture = Work("decode", 6)
    return [
        chain("source_wait", wait(4), cheap()),
        chain("source_generator", wait(5), cheap(), form="generator", batch=Batch(4), consumer=Consumer(ms=3)),
        chain("source_py", py(4), cheap()),
        chain("source_np", sort(4), Map("light", wait(0.5)), batch=Batch(16)),
        chain("source_threads", wait(9), Map("light", wait(1)), workers=2),
        chain("source_processes", wait(10), Map("light", wait(1)), workers=2, processes=True),
        chain("source_processes_py", py(10), Map("light", wait(1)), workers=2, processes=True),
        chain("source_burst", burst(320, 64), Map("light", wait(0.5)), consumer=Consumer(ms=10)),
        chain("source_burst_generator", burst(240, 40), cheap(), form="generator", batch=Batch(4),
              consumer=Consumer(ms=5)),
        chain("source_poll", wait(0.4), workers=2, batch=Batch(32), consumer=Consumer(ms=1)),
        chain("source_poll_map", wait(2), Map("light", wait(0.3)), workers=2, consumer=Consumer(ms=3)),
        chain("source_poll_wide", wait(3), cheap(), workers=2, batch=Batch(16), consumer=Consumer(ms=8)),
        chain("source_poll_processes", wait(4), cheap(), workers=2, processes=True, prefetch=4, batch=Batch(4),
              consumer=Consumer(ms=2)),
        chain("source_shuffled", wait(3), cheap(), shuffle=128),
        chain("source_folder", picture, cheap(), form="folder", batch=Batch(4)),
        chain("source_row_by_row", wait(6), cheap(), batch=Batch(1), consumer=Consumer(ms=2)),
        chain("source_filtered", wait(1.5), Map("light", wait(0.2)), keep=4),
    ]  # fmt: skip


def maps() -> list[Pipeline]:
    """A map is slow."""
    return [
        chain("map_wait", wait(1), Map("slow", wait(5))),
        chain("map_wait_two", wait(0.5), Map("slow", wait(8), 2)),
        chain("map_py", wait(0.5), Map("slow", py(4))),
        chain("map_py_two", wait(1), Map("slow", py(3), 2), consumer=Consumer(ms=4)),
        chain("maps_py", wait(0.5), Map("lesser", py(2)), Map("greater", py(4))),
        chain("source_and_map_py", py(1.5), Map("slow", py(3.5)), consumer=Consumer(ms=4)),
        chain("map_py_process", wait(1), Map("slow", py(5), 1, processes=True)),
        chain("map_np", wait(0.5), Map("slow", sort(4))),
        chain("map_np_two", wait(0.5), Map("slow", sort(7), 2)),
        chain("map_vision", Work(), Map("slow", vision(6)), consumer=Consumer(ms=4)),
        chain("map_text", Work(), Map("slow", wait(3)), form="text", batch=Batch(16)),
        chain("map_mindrecord", Work(), Map("slow", sort(3)), form="mindrecord", batch=Batch(8)),
        chain("map_slices", Work(), Map("slow", wait(2)), form="slices", batch=Batch(16)),
        chain("map_burst", wait(0.5), Map("slow", burst(240, 48, 0.2)), consumer=Consumer(ms=8)),
        chain("map_tiny_queue", wait(1), Map("slow", wait(5)), prefetch=1),
        chain("map_small_queue_np", wait(1), Map("slow", sort(5)), prefetch=2),
        chain("maps_first", wait(0.7), Map("early", wait(5)), Map("late", wait(2))),
        chain("maps_second", wait(0.7), Map("early", sort(1.5)), Map("late", sort(4))),
        chain("maps_three", wait(1), Map("early", wait(2)), Map("middle", wait(4)), Map("late", wait(1))),
        chain("map_after_warm_start", Work("sleep", 0.5, first_ms=8, first=64), Map("slow", wait(3))),
        chain("map_row_by_row", wait(1), Map("slow", wait(5)), batch=Batch(1), consumer=Consumer(ms=2)),
        chain("map_wide_batch", wait(0.3), Map("slow", wait(1)), batch=Batch(64), consumer=Consumer(ms=20)),
        chain("map_before_filter", wait(0.5), Map("slow", wait(1.5)), keep=3),
        chain("map_after_poll", wait(1), Map("slow", wait(5)), workers=2),
        chain("map_dict", wait(1), Map("slow", wait(4)), style="dict"),
        chain("map_epochs", wait(1), Map("slow", wait(4)), epochs=4),
        chain("map_fresh_epochs", wait(1), Map("slow", wait(4)), epochs=4, fresh=True),
        chain("map_repeat", wait(1), Map("slow", sort(4)), repeat=3),
        chain("map_pynative", wait(1), Map("slow", wait(12)), consumer=Consumer("pynative", 21)),
        chain("source_model", wait(6), cheap(), consumer=Consumer("model", 4)),
        chain("map_short", wait(1), Map("slow", wait(5)), seconds=1.5),
        chain("map_np_consumer", wait(1), Map("slow", wait(4)), consumer=Consumer("np", 12)),
    ]


def batches_and_joins() -> list[Pipeline]:
    """Batch is slow, or something before or after a zip or a concatenation."""
    fast, slow = Branch(Source("left", work=wait(1))), Branch(Source("right", work=wait(4)))
    return [
        chain("batch_wait", wait(0.7), cheap(), batch=Batch(8, wait(32))),
        chain("batch_np", wait(0.7), Map("light", wait(0.7)), batch=Batch(8, sort(30))),
        chain("batch_py", wait(0.5), batch=Batch(16, py(40))),
        chain("batch_wait_two", wait(0.4), cheap(), batch=Batch(8, wait(50), 2)),
        two("zip_last_source", "zip", fast, slow),
        two("zip_first_source", "zip", Branch(Source("left", work=wait(4))), Branch(Source("right", work=wait(1)))),
        two("zip_first_map", "zip", Branch(Source("left", work=wait(0.5)), (Map("slow", sort(4)),)),
            Branch(Source("right", work=wait(1)))),
        two("zip_after", "zip", Branch(Source("left", work=wait(0.5))), Branch(Source("right", work=wait(1))),
            maps=(Map("slow", wait(4)),)),
        two("concat_second", "concat", Branch(Source("left", work=wait(0.5)), share=1),
            Branch(Source("right", work=wait(4)), share=3)),
        two("concat_shared", "concat", fast, Branch(Source("right", work=wait(0.5))), maps=(Map("slow", wait(4)),)),
    ]  # fmt: skip


def near() -> list[Pipeline]:
    """The two slowest are close: within 1.15 both are right, at 1.3 only one is."""
    return [
        chain("tie_maps", wait(0.5), Map("early", wait(4)), Map("late", wait(4.4))),
        chain("tie_source_map", wait(4.4), Map("late", wait(4))),
        chain("tie_consumer", wait(0.7), Map("slow", wait(4)), consumer=Consumer(ms=35)),
        chain("apart_maps", wait(0.5), Map("early", wait(5.3)), Map("late", wait(4))),
        chain("apart_source", wait(5.3), Map("late", wait(4))),
        chain("apart_batch", wait(0.5), Map("early", wait(4)), batch=Batch(8, wait(43))),
        chain("apart_consumer", wait(0.7), Map("slow", wait(5.3)), consumer=Consumer(ms=32)),
    ]


def consumers() -> list[Pipeline]:
    """The training loop is slow: data is there in time."""
    return [
        chain("loop_sleep", wait(0.5), Map("light", wait(0.7)), consumer=Consumer(ms=32)),
        chain("loop_np", wait(0.5), Map("light", wait(0.7)), consumer=Consumer("np", 20)),
        chain("loop_1ms", Work(), cheap("tiny"), batch=Batch(1), consumer=Consumer(ms=1)),
        chain("loop_2ms", Work(), Map("tiny", sort(0.2)), batch=Batch(4), consumer=Consumer(ms=2)),
        chain("loop_3ms", wait(0.1), Map("tiny", sort(0.1)), batch=Batch(8), consumer=Consumer(ms=3)),
        chain("loop_2ms_np", Work(), Map("tiny", sort(0.2)), batch=Batch(2), consumer=Consumer("np", 2)),
        chain("loop_near_map", wait(0.7), Map("slow", wait(4)), consumer=Consumer(ms=40)),
        chain("loop_near_source", wait(4), cheap(), consumer=Consumer(ms=40)),
        chain("loop_near_batch", wait(0.7), batch=Batch(8, wait(30)), consumer=Consumer(ms=37)),
        chain("loop_near_np", wait(0.7), Map("slow", sort(4)), consumer=Consumer(ms=42)),
        chain("loop_pynative", Work(), cheap(), consumer=Consumer("pynative", 21), batch=Batch(8)),
        chain("loop_pynative_wide", Work(), cheap(), consumer=Consumer("pynative", 48, 8), batch=Batch(32)),
        chain("loop_model", Work(), Map("tiny", sort(0.1)), consumer=Consumer("model", 4), batch=Batch(8)),
        chain("loop_model_wide", wait(0.2), Map("tiny", sort(0.1)), consumer=Consumer("model", 22, 8), batch=Batch(32)),
        chain("loop_py_map", wait(0.5), Map("slow", py(1)), consumer=Consumer(ms=24)),
        chain("loop_shuffled", wait(0.5), cheap(), shuffle=64, consumer=Consumer(ms=20)),
        chain("loop_epochs", wait(1), cheap(), epochs=4, consumer=Consumer(ms=25)),
        chain("loop_dict", wait(1), cheap(), style="dict", consumer=Consumer(ms=25)),
        chain("loop_tiny_queue", wait(1), Map("light", wait(1)), prefetch=2, consumer=Consumer(ms=25)),
        chain("loop_poll", wait(1), cheap(), workers=2, consumer=Consumer(ms=45)),
        chain("loop_burst", burst(60, 64, 0.3), cheap(), consumer=Consumer(ms=20)),
        chain("loop_folder", Work("decode", 2), cheap(), form="folder", batch=Batch(4), consumer=Consumer(ms=25)),
        two("loop_zip", "zip", Branch(Source("left", work=wait(1))), Branch(Source("right", work=wait(2))),
            consumer=Consumer(ms=30)),
    ]  # fmt: skip


def designed() -> list[Pipeline]:
    """All of them; names are unique."""
    return [*sources(), *maps(), *batches_and_joins(), *near(), *consumers()]


def find(name: str) -> Pipeline:
    """The designed pipeline of that name."""
    return next(pipeline for pipeline in designed() if pipeline.name == name)
