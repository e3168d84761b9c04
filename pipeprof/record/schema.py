"""The record: every table, column, type and unit. The one place that says it; the table reference page is made from it.

Times are int64 ns since the repetition's zero (the launch of the command). Unknown is null, never 0. Every table
also has the columns `rep` and `rank` (bigint), which come from the folder names (`rep=0/rank=0`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1

PARTITIONS = ("rep", "rank")


@dataclass(frozen=True)
class Column:
    """One column: its SQL type (bigint, double, varchar, boolean), unit and meaning."""

    name: str
    type: str
    unit: str
    doc: str


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names without the partition columns."""
        return tuple(column.name for column in self.columns)

    def arrow(self) -> pa.Schema:
        """The Arrow schema of a stored file (without `rep` and `rank`)."""
        import pyarrow as pa  # noqa: PLC0415 - the launcher imports this module and must stay light

        types = {"bigint": pa.int64(), "double": pa.float64(), "varchar": pa.string(), "boolean": pa.bool_()}
        return pa.schema([pa.field(column.name, types[column.type]) for column in self.columns])


def _table(name: str, row: str, *columns: tuple[str, str, str, str]) -> Table:
    return Table(name, row, tuple(Column(*column) for column in columns))


_PIPELINE_ID = ("pipeline_id", "bigint", "", "the iterator's tree, from 0 in order of creation; one per iterator")
_OP_ID = ("op_id", "bigint", "", "operator of that pipeline; 0 is nearest the training loop")

_ROLLUP = (
    ("kind", "varchar", "", "of the steps that count: train, or warmup when the rank has no other; null without steps"),
    ("steps", "bigint", "", "training steps, warm-up included"),
    ("timed_steps", "bigint", "", "those that the next three are from: outside op windows, as in step/summary"),
    ("median_ns", "double", "ns", "median step"),
    ("p90_ns", "double", "ns", "90th percentile of the steps"),
    ("data_wait_share", "double", "0..1", "of the time of these steps, inside the dataset iterator"),
    ("training_ns", "bigint", "ns", "all training steps together"),
    ("wait_ns", "bigint", "ns", "of that, inside the dataset iterator; null when no step fetched a batch"),
    ("phase_data_wait_ns", "double", "ns", "median of the phase before the forward pass"),
    ("phase_compute_ns", "double", "ns", "median of the phases behind it"),
    ("phase_forward_backward_ns", "double", "ns", "median of forward and backward pass, where operators were recorded"),
    ("phase_tail_ns", "double", "ns", "median of the phase behind them"),
    ("comm_share", "double", "0..1", "share of communication in a step; null when not recorded"),
    ("exposed_share", "double", "0..1", "of a step, communication while no operator runs; null when not known"),
    ("rss_bytes", "bigint", "bytes", "largest resident set of a process"),
    ("pool_bytes", "bigint", "bytes", "peak of a memory pool of the framework"),
    ("run_ns", "bigint", "ns", "the whole run, from run_part; the following are parts of it"),
    ("start_ns", "bigint", "ns", "start-up: interpreter, imports, set-up, building the dataset"),
    ("compile_ns", "bigint", "ns", "compiling graphs, recompilations included"),
    ("evaluation_ns", "bigint", "ns", "evaluations"),
    ("checkpoint_ns", "bigint", "ns", "checkpoints"),
    ("callback_ns", "bigint", "ns", "other callbacks"),
    ("verdict", "varchar", "", "on the data of the whole run: input_bound | consumer_bound | balanced | not_measured"),
    ("verdict_rank", "bigint", "", "the rank that the verdict was found on; null when it names none"),
    ("op_type", "varchar", "", "type of the operator that limits; null when none is named"),
    ("op_name", "varchar", "", "what it does; null when it has no name"),
    ("op_kind", "varchar", "", "cpu | wait | gil | lock_wait | burst | poll | host_saturated; null when not known"),
    ("call", "varchar", "", "file:line of the call that made it"),
    ("code", "varchar", "", "file:line of its Python function or class"),
    ("advice", "varchar", "", "code of the advice on that operator"),
    ("parameter", "varchar", "", "the setting that it changes"),
    ("gain", "double", "", "predicted speed-up of the training; null when it cannot be predicted"),
    ("gain_low", "double", "", "its lower bound"),
    ("gain_high", "double", "", "its upper bound"),
    ("gain_most", "double", "", "upper bound of the speed-up by any fix of this operator"),
    ("cause", "varchar", "", "code of what leads the verdict on the run, such as input_bound, host_gap, part"),
    ("cause_detail", "varchar", "", "which, such as the part of the run; null when the code says all"),
    ("cause_share", "double", "0..1", "of the training's time that it costs; null when not known"),
    ("causes", "varchar", "", "all causes, the costliest first, as JSON: `verdict` of the report"),
)

TABLES: tuple[Table, ...] = (
    _table(
        "step",
        "step of the training loop, or of an evaluation",
        ("step", "bigint", "", "position among all steps of the rank, in time order, from 0"),
        ("kind_step", "bigint", "", "position among the rank's training steps (warmup, train), or its eval steps"),
        ("kind", "varchar", "", "warmup (start-up, or a graph was compiled in it) | train | eval"),
        ("epoch", "bigint", "", "from 0; null when the source cannot tell"),
        ("pipeline_id", "bigint", "", "the dataset iterator that fed it; null when none did"),
        ("start_ns", "bigint", "ns", "end of the previous step, or the first fetch of the epoch"),
        ("fp_ns", "bigint", "ns", "forward start (FP): see fp_source"),
        ("bp_ns", "bigint", "ns", "backward end (BP): see bp_source; null when it is not known"),
        ("end_ns", "bigint", "ns", "end of the step, callbacks included"),
        ("data_wait_ns", "bigint", "ns", "fp_ns - start_ns; null when fp_ns is"),
        ("fetch_wait_ns", "bigint", "ns", "time inside the dataset iterator; null when the step fetched nothing"),
        ("fp_source", "varchar", "", "op (first forward operator) | fetch (the batch was handed over) | null"),
        ("in_window", "boolean", "", "operators were being recorded, so the step time is inflated"),
        ("updates", "bigint", "", "optimizer updates seen from Python in the step; null when not visible"),
        ("source_step", "bigint", "", "its number in the source, such as N of ProfilerStep#N; null when it has none"),
        (
            "input_ns",
            "bigint",
            "ns",
            "time until the batch was handed over, and later time in the iterator; null when the step fetched nothing",
        ),
        (
            "forward_ns",
            "bigint",
            "ns",
            "time of the forward pass: of PyNative steps in op windows, and of PyTorch's on a CPU; null otherwise",
        ),
        ("backward_ns", "bigint", "ns", "as forward_ns: of the backward pass"),
        ("gradients_ns", "bigint", "ns", "as forward_ns: between backward pass and optimizer, such as clipping"),
        ("optimizer_ns", "bigint", "ns", "as forward_ns: of the optimizer"),
        ("after_ns", "bigint", "ns", "as forward_ns: behind the optimizer; the five and input_ns add up to the step"),
        (
            "bp_source",
            "varchar",
            "",
            "op | update (optimizer is called) | call (what makes the gradients returns) | share (as in op windows)",
        ),
        ("bp_error_ns", "bigint", "ns", "how much later it may be; of share, how far off either way; null: not known"),
        (
            "called_ns",
            "bigint",
            "ns",
            "the network was first called in it, of a step whose batch came from nothing that was recorded; else null",
        ),
    ),
    _table(
        "op",
        "execution of an operator",
        ("op_id", "bigint", "", "the operator, see op_info"),
        ("step", "bigint", "", "the step it ran in; null when it is not known"),
        ("start_ns", "bigint", "ns", "start"),
        ("dur_ns", "bigint", "ns", "duration, children included"),
        ("self_ns", "bigint", "ns", "duration without the operators it called"),
        ("wait_ns", "bigint", "ns", "time between launch and start; null when the source does not have it"),
        ("track", "varchar", "", "stream, thread or device"),
        ("side", "varchar", "", "device (it ran there) | host (it was launched there); null where there is only one"),
        ("exact_dur_ns", "double", "ns", "dur_ns before it was rounded; null when the source has whole ns"),
        ("exact_wait_ns", "double", "ns", "wait_ns before it was rounded; null when the source has whole ns"),
        ("exec_id", "bigint", "", "this execution, within the rank; null when the source has no calls"),
        ("parent_id", "bigint", "", "exec_id of the execution that called it, or launched it on a device"),
        ("device_total_ns", "bigint", "ns", "device time of what it and its callees launched; of a device row, dur_ns"),
        ("device_self_ns", "bigint", "ns", "device time of what it launched itself; of a device row, dur_ns"),
        ("memory_bytes", "bigint", "bytes", "allocated minus freed on the host during it, callees included"),
        ("self_memory_bytes", "bigint", "bytes", "as memory_bytes, without callees"),
        ("device_memory_bytes", "bigint", "bytes", "allocated minus freed on devices during it, callees included"),
        ("self_device_memory_bytes", "bigint", "bytes", "as device_memory_bytes, without callees"),
    ),
    _table(
        "op_info",
        "operator",
        ("op_id", "bigint", "", "identity within the rank"),
        ("name", "varchar", "", "full name, scope included"),
        ("type", "varchar", "", "operator type, such as Conv2D"),
        ("scope", "varchar", "", "the path before the last part of the name"),
        (
            "phase",
            "varchar",
            "",
            (
                "forward | backward | gradients (before the update) | optimizer | after (it) | communication | "
                "data (makes batches) | other"
            ),
        ),
        ("device", "varchar", "", "where it ran, such as CPU"),
        ("in_shapes", "varchar", "", "input shapes and types as text"),
        ("out_shapes", "varchar", "", "output shapes and types as text"),
        ("flops", "bigint", "", "floating-point operations of one execution"),
        ("bytes", "bigint", "bytes", "bytes moved by one execution"),
        ("stack_id", "bigint", "", "source location"),
        ("source_id", "varchar", "", "its id in the source; null when it has none"),
        ("in_strides", "varchar", "", "strides of inputs that are not contiguous, in elements, as text"),
        ("category", "varchar", "", "kind of event in the source, such as cpu_op, kernel; null when it has none"),
        ("in_types", "varchar", "", "input types as text, where in_shapes does not have them"),
        ("params", "varchar", "", "parameters such as stride, padding and mode as JSON; null when it has none"),
        ("waits_for", "varchar", "", "what it waits for on other devices, as JSON; null when the source does not say"),
        ("out_flags", "varchar", "", "flags of each of its output variables, as JSON; null when none has any"),
        (
            "out_previous_ends",
            "varchar",
            "",
            "where the previous memory of each output variable ends, as JSON; null when not known",
        ),
    ),
    _table(
        "collective",
        "communication event",
        ("step", "bigint", "", "the step it ran in; null when it is not known"),
        ("name", "varchar", "", "full name"),
        (
            "kind",
            "varchar",
            "",
            "all_reduce | reduce_scatter | all_gather | broadcast | send | receive | all_to_all | ...",
        ),
        ("group_name", "varchar", "", "communication group"),
        ("track", "varchar", "", "stream or device"),
        ("start_ns", "bigint", "ns", "start"),
        ("dur_ns", "bigint", "ns", "duration"),
        ("bytes", "bigint", "bytes", "payload"),
    ),
    _table(
        "pipeline",
        "dataset iterator",
        ("pipeline_id", "bigint", "", "from 0 in order of creation"),
        (
            "pipeline_key",
            "varchar",
            "",
            "hash of operator types, names and creation site: iterators of the same pipeline have the same key",
        ),
        ("role", "varchar", "", "train | eval | hidden (made by MindSpore or by a source) | other"),
        ("site", "varchar", "", "file:line that created it"),
        ("created_ns", "bigint", "ns", "creation began"),
        ("ready_ns", "bigint", "ns", "creation ended"),
        ("closed_ns", "bigint", "ns", "its tree was ended; null when it was still open"),
        ("batch_size", "bigint", "rows", "of the outermost batch operator"),
        ("num_epochs", "bigint", "", "epochs it was made for; null when unlimited"),
        ("epoch_batches", "bigint", "batches", "of its longest complete epoch; null when there is none"),
        ("batch_bytes", "bigint", "bytes", "of its first batch; null when not known"),
        ("queues", "varchar", "", "recorded | not_recorded: reason | not_attributable: reason"),
        ("settings", "varchar", "", "what a loader was made with, as JSON; null of a dataset of MindSpore's"),
        ("iteration", "bigint", "", "iterators that its loader made before; null of a dataset of MindSpore's"),
        ("closing_ns", "bigint", "ns", "a loader's worker processes took to end; null without any"),
    ),
    _table(
        "pipeline_op",
        "operator of the dataset graph",
        _PIPELINE_ID,
        _OP_ID,
        ("op_type", "varchar", "", "such as MapOp"),
        ("name", "varchar", "", "what it does: source class, map functions"),
        ("workers", "bigint", "", "parallel workers"),
        ("capacity", "bigint", "", "size of its output queue; null when it has none"),
        ("is_python", "boolean", "", "runs the user's Python; null when unknown"),
        ("uses_processes", "boolean", "", "its Python runs in worker processes; null when unknown"),
        (
            "iterated",
            "boolean",
            "",
            "a Python source without __getitem__, whose rows are taken one after the other; null when unknown",
        ),
        (
            "wrapped",
            "boolean",
            "",
            "a Python source that only hands on the rows of a MindSpore dataset; null when unknown",
        ),
        ("inlined", "boolean", "", "runs inside its consumer and has no queue"),
        ("node", "bigint", "", "position in the user's dataset graph, from the sink in pre-order; null when unknown"),
        ("site", "varchar", "", "file:line of the call that made the operator"),
        (
            "callers",
            "varchar",
            "",
            "file:line of the calls that led there, one a line, the nearest first; null where none is known",
        ),
        ("code", "varchar", "", "file:line where its Python function or class is defined"),
        ("source_rows", "bigint", "rows", "rows that a Python source reports; null for others, or when it does not"),
        (
            "stated_fill_ratio",
            "double",
            "0..1",
            "mean fill of its output queue, if the imported files state it; null otherwise: see queue",
        ),
    ),
    _table(
        "op_instructions",
        "function of a pipeline operator whose first calls were counted",
        _PIPELINE_ID,
        _OP_ID,
        ("part", "bigint", "", "which of the operator's functions, from 0 in the order in which they are called"),
        ("calls", "bigint", "", "calls that were counted"),
        (
            "median",
            "double",
            "",
            "instructions of the Python interpreter in a call: the median over them; 500,001 where there are more",
        ),
        ("least", "bigint", "", "fewest in a call"),
        ("most", "bigint", "", "most in a call"),
    ),
    _table(
        "pipeline_edge",
        "connection of two pipeline operators",
        _PIPELINE_ID,
        ("producer_id", "bigint", "", "op_id of the producer"),
        ("consumer_id", "bigint", "", "op_id of the consumer"),
    ),
    _table(
        "queue",
        "queue sample",
        _PIPELINE_ID,
        _OP_ID,
        ("t_ns", "bigint", "ns", "time of the sample (as stamped, not a multiple of the interval)"),
        ("depth", "bigint", "", "entries in its output queue: rows before the batch operator, batches after it"),
        ("capacity", "bigint", "", "maximum number of entries"),
    ),
    _table(
        "op_service",
        "batch (or interval) x pipeline operator: service time",
        _PIPELINE_ID,
        _OP_ID,
        ("t_ns", "bigint", "ns", "when the batch was handed over; end of the interval"),
        ("source", "varchar", "", "log (MindSpore's timing lines) | hook (the user's Python was timed)"),
        ("avg_ns", "bigint", "ns", "mean time of a worker for one row (one batch, for a batch operator)"),
        ("max_ns", "bigint", "ns", "longest; null when only one row was counted"),
        ("min_ns", "bigint", "ns", "shortest; null when only one row was counted"),
        ("rows", "bigint", "rows", "rows worked on"),
        ("batches", "bigint", "batches", "handed over to the loop in this interval; 1 for a timing line"),
        ("cpu_ns", "bigint", "ns", "CPU time of a row: of the worker's thread or process; null when not measured"),
        ("delay_ns", "bigint", "ns", "part of avg_ns in which it was ready to run but had no core; null as cpu_ns"),
        ("io_ns", "bigint", "ns", "part of avg_ns spent reading; null when the operator does not say"),
        ("read_bytes", "bigint", "bytes", "read from files by the calls for one row; null when not known"),
        ("in_bytes", "bigint", "bytes", "arguments of the calls for one row, 0 for a source; null when not known"),
        ("out_bytes", "bigint", "bytes", "results of the calls for one row; null when not known"),
    ),
    _table(
        "fetch",
        "batch fetched from a dataset iterator",
        _PIPELINE_ID,
        ("fetch", "bigint", "", "position within the iterator, from 0"),
        ("step", "bigint", "", "the step that used it; null when none did"),
        ("start_ns", "bigint", "ns", "the loop asked for the batch"),
        ("wait_ns", "bigint", "ns", "until it had it"),
        ("push_ns", "bigint", "ns", "time to hand it on, from the dataset's own record (whole ms)"),
        ("batch_ns", "bigint", "ns", "total time inside the iterator, from the dataset's own record (whole ms)"),
        ("depth", "bigint", "batches", "left in the last queue after this one was taken"),
        ("capacity", "bigint", "batches", "of the last queue"),
        ("side", "varchar", "", "iterator | host_queue | data_queue"),
        (
            "held",
            "bigint",
            "batches",
            "of a loader with workers: those that were ready before it, and had to wait for it; null where not known",
        ),
        (
            "tasks",
            "bigint",
            "batches",
            "of a loader with workers: those that no worker had begun; null: not known",
        ),
    ),
    _table(
        "cpu",
        "CPU sample",
        ("t_ns", "bigint", "ns", "end of the sampled interval"),
        (
            "scope",
            "varchar",
            "",
            "host | process | pipeline_op | gil (interpreter's lock: share of time it was held) | lock_wait",
        ),
        ("name", "varchar", "", "what the process is: trainer, worker, launcher; null for others"),
        ("pid", "bigint", "", "of a process; null for others"),
        ("pipeline_id", "bigint", "", "of a pipeline operator or one of its worker processes; null for others"),
        ("op_id", "bigint", "", "as pipeline_id"),
        (
            "user_ratio",
            "double",
            "0..",
            (
                "host: share of all cores; gil: share of the time; lock_wait: threads of the operator that waited for "
                "the lock; others: cores (1.0 is one busy core)"
            ),
        ),
        ("sys_ratio", "double", "0..", "as user_ratio, in the kernel"),
        ("idle_ratio", "double", "0..1", "host: share of all cores that was idle; null for others"),
    ),
    _table(
        "cpu_use",
        "part of the CPU time of a sampled interval; the parts of an interval add up to what the machine was busy",
        ("start_ns", "bigint", "ns", "the interval begins"),
        ("end_ns", "bigint", "ns", "it ends"),
        (
            "part",
            "varchar",
            "",
            (
                "threads of the training process: main | mindspore_thread | dataset_thread | python_thread | "
                "other_thread; trainer (all of it, where its threads were not told apart) | worker (a dataset worker "
                "process) | child (another process of the job) | launcher (processes above the training) | other_rank "
                "| profiler (pipeprof itself) | neighbour (the rest of the machine)"
            ),
        ),
        ("pid", "bigint", "", "worker, child, launcher: the process, see process; a process's children count with it"),
        ("members", "bigint", "", "threads or processes that used it"),
        ("cpu_ns", "bigint", "ns", "user and kernel time of all of them"),
        ("wait_ns", "bigint", "ns", "threads: runnable, but without a CPU; null when the kernel does not count it"),
    ),
    _table(
        "cpu_room",
        "sampled interval and training process: the CPU that it could use",
        ("start_ns", "bigint", "ns", "the interval begins"),
        ("end_ns", "bigint", "ns", "it ends"),
        ("cores", "double", "cores", "it may use: its affinity, or the quota of its control group when that is less"),
        ("idle_ns", "bigint", "ns", "CPU time that these cores had left; null when it is not known"),
        ("throttled_ns", "bigint", "ns", "its control group was stopped, having used its quota; null when not known"),
        ("steal_ns", "bigint", "ns", "CPU time of the machine that its hypervisor gave to others"),
        ("pressure_ns", "bigint", "ns", "a thread of the machine waited for a CPU; null when not counted"),
    ),
    _table(
        "process",
        "process of the job",
        ("pid", "bigint", "", "process id"),
        ("parent_pid", "bigint", "", "of its parent"),
        ("part", "varchar", "", "trainer | worker (of a dataset) | child | launcher; see cpu_use"),
        ("command", "varchar", "", "command line, without secrets; of a forked process its parent's"),
        ("what", "varchar", "", "class or function that multiprocessing runs in it; null when there is none"),
        ("site", "varchar", "", "file:line of the user's call that made it; null when it was made outside Python"),
        ("library", "varchar", "", "file:line of the library that made it in that call; null when none did"),
        ("first_ns", "bigint", "ns", "first sample that saw it"),
        ("last_ns", "bigint", "ns", "last sample that saw it"),
    ),
    _table(
        "memory",
        "memory sample",
        ("t_ns", "bigint", "ns", "time of the sample"),
        ("device", "varchar", "", "host (whole machine) | process | CPU and others (the framework's pool)"),
        ("pid", "bigint", "", "of a process; null for others"),
        ("name", "varchar", "", "what the process is: trainer, worker, launcher; null for others"),
        ("allocated_bytes", "bigint", "bytes", "pool: in use; host: used"),
        ("reserved_bytes", "bigint", "bytes", "pool: held from the system"),
        ("active_bytes", "bigint", "bytes", "pool: reachable"),
        ("rss_bytes", "bigint", "bytes", "resident set of the process"),
        ("rss_peak_bytes", "bigint", "bytes", "largest resident set so far"),
    ),
    _table(
        "allocation",
        "lifetime of a tensor or block",
        ("address", "bigint", "", "address"),
        ("bytes", "bigint", "bytes", "size"),
        ("produced_ns", "bigint", "ns", "allocated"),
        ("released_ns", "bigint", "ns", "freed; null when it was still held"),
        ("op_id", "bigint", "", "the operator that produced it"),
        (
            "evidence",
            "varchar",
            "",
            "for blocks inferred from a pool's changes: matched, inferred, earlier, unseen; null: recorded",
        ),
        ("device", "varchar", "", "where it lies, such as CPU, CUDA:0; null where the source does not say"),
    ),
    _table(
        "span",
        "any other interval",
        ("track", "varchar", "", "thread or lane"),
        ("category", "varchar", "", "such as compile, callback, window, cell (call of a module)"),
        ("name", "varchar", "", "what happened"),
        ("start_ns", "bigint", "ns", "start"),
        ("dur_ns", "bigint", "ns", "duration"),
        ("stack_id", "bigint", "", "source location"),
        ("scope", "varchar", "", "of a cell: the cells around it, such as `Net/blocks.0-Block`; null for others"),
    ),
    _table(
        "sync",
        "step, call and line of code, for calls that wait for the network: a tensor read as numbers, or printed",
        ("step", "bigint", "", "the step in which they began; null outside of steps"),
        ("call", "varchar", "", "method of Tensor, such as asnumpy, item, __str__ (print); or synchronize"),
        ("site", "varchar", "", "file:line of the user's code"),
        ("via", "varchar", "", "file of MindSpore that makes the call, such as a callback's; null: the line itself"),
        ("count", "bigint", "", "calls"),
        ("total_ns", "bigint", "ns", "time in them"),
        ("max_ns", "bigint", "ns", "longest"),
    ),
    _table(
        "stack",
        "source location: a frame and the frames that called it",
        ("stack_id", "bigint", "", "identity within the rank"),
        ("parent_id", "bigint", "", "stack_id of the caller; null for the outermost frame"),
        ("frame", "varchar", "", "such as `file.py(12): function`"),
        ("site", "varchar", "", "the nearest frame that is not in a module of MindSpore's; null when there is none"),
    ),
    _table(
        "stack_sample",
        "look at which Python the thread that trains was in",
        ("t_ns", "bigint", "ns", "time of the look"),
        ("dur_ns", "bigint", "ns", "time that it stands for: since the look before"),
        ("stack_id", "bigint", "", "the innermost frame; of consecutive frames of MindSpore's the first and the last"),
        ("part", "varchar", "", "checkpoint | evaluation: what was timed as a whole, and the look fell into; or null"),
    ),
    _table(
        "flow",
        "end of an arrow between two events",
        ("flow_id", "varchar", "", "the same for both ends, together with the category"),
        ("category", "varchar", "", "such as ac2g (launch to device), fwdbwd"),
        ("name", "varchar", "", "name"),
        ("side", "varchar", "", "start | step | end"),
        ("t_ns", "bigint", "ns", "time"),
        ("track", "varchar", "", "thread or stream"),
    ),
    _table(
        "counter",
        "reading of a counter of the source",
        ("t_ns", "bigint", "ns", "time"),
        ("track", "varchar", "", "process, thread or device"),
        ("name", "varchar", "", "counter"),
        ("series", "varchar", "", "one of its values"),
        ("value", "double", "", "in the source's unit"),
    ),
    _table(
        "stage",
        "set-up stage of a repetition",
        ("stage", "varchar", "", "start (until Python runs) | import | build | compile | warmup | steady"),
        ("start_ns", "bigint", "ns", "start"),
        ("dur_ns", "bigint", "ns", "duration"),
    ),
    _table(
        "run_part",
        (
            "part of a rank's run; its rows add up to the time from the launch to the end of the command; of a trace "
            "to that of the steps and of what lies between them"
        ),
        (
            "part",
            "varchar",
            "",
            (
                "start (until Python runs) | import | set_up (until the first step) | dataset_build | "
                "look (at samples) | compile | compile_eval | recompile | first_steps (warm-up) | training | "
                "evaluation | checkpoint | callback | "
                "epoch_gap | between_steps | profiling (op windows opened and written) | "
                "ending (after the last step) | not_recorded"
            ),
        ),
        ("detail", "varchar", "", "callback: its class; compiling: the network or function; null for others"),
        (
            "cause",
            "varchar",
            "",
            "recompile: short_batch | changed_shapes | again | new_object (made anew); ending: rest_of_epoch; or null",
        ),
        ("count", "bigint", "", "how often, such as steps, evaluations, graphs"),
        ("start_ns", "bigint", "ns", "start of the first"),
        ("dur_ns", "bigint", "ns", "total, without time that belongs to another part"),
    ),
    _table(
        "step_split",
        "step as its profiler split it; the parts are that program's own and need not add up",
        ("step", "bigint", "", "the step; null when it is not known, or for the whole run"),
        ("source_step", "bigint", "", "its number in the source; null for the whole run"),
        ("source", "varchar", "", "kind of file: step_trace_time | cluster_step_trace | cluster_analyse"),
        ("stage_index", "bigint", "", "pipeline stage, for a row of a whole stage; null for a rank's own"),
        ("computing_ns", "bigint", "ns", "device computing"),
        ("communication_ns", "bigint", "ns", "all communication"),
        ("overlapped_ns", "bigint", "ns", "communication while the device computes"),
        ("exposed_ns", "bigint", "ns", "communication that is not overlapped"),
        ("exposed_without_receive_ns", "bigint", "ns", "as exposed_ns, without receiving"),
        ("receive_ns", "bigint", "ns", "receiving that is not overlapped"),
        ("free_ns", "bigint", "ns", "neither computing nor communication"),
        ("stage_ns", "bigint", "ns", "the step without waiting for other pipeline stages"),
        ("bubble_ns", "bigint", "ns", "waiting for other pipeline stages"),
        ("preparing_ns", "bigint", "ns", "host time before the first device task"),
    ),
    _table(
        "op_total",
        "operator, or type of operators, whose executions the source gives only in sum",
        ("source", "varchar", "", "kind of file, such as aicore_type, op_statistic, api_statistic"),
        ("name", "varchar", "", "full name; null for a type"),
        ("type", "varchar", "", "operator type, or level of an API"),
        ("device", "varchar", "", "where it ran, such as AI_CORE, AI_CPU, host"),
        ("shapes", "varchar", "", "input shapes as text"),
        ("count", "bigint", "", "executions; null when the source does not say"),
        ("total_ns", "bigint", "ns", "sum of durations"),
        ("mean_ns", "bigint", "ns", "mean of durations, rounded"),
        ("self_ns", "bigint", "ns", "without the operators it called"),
        ("min_ns", "bigint", "ns", "shortest"),
        ("max_ns", "bigint", "ns", "longest"),
        ("device_ns", "bigint", "ns", "time on the device, of a host operator"),
        ("dispatch_ns", "bigint", "ns", "time to dispatch"),
    ),
    _table(
        "collective_cost",
        "communication operator in a step, as its profiler split its time",
        ("step", "bigint", "", "the step; null when it is not known"),
        ("name", "varchar", "", "full name; null for all operators of the step"),
        ("group_name", "varchar", "", "communication group"),
        ("kind", "varchar", "", "all_reduce, send, ...; see collective"),
        ("dur_ns", "bigint", "ns", "from begin to end"),
        ("transit_ns", "bigint", "ns", "moving data"),
        ("wait_ns", "bigint", "ns", "waiting for other ranks"),
        ("sync_ns", "bigint", "ns", "part of the wait before the first transfer"),
        ("idle_ns", "bigint", "ns", "neither"),
    ),
    _table(
        "rank_link",
        "data moved between two ranks by a communication operator in a step",
        ("step", "bigint", "", "the step; null when it is not known"),
        ("name", "varchar", "", "communication operator; null for all of the step"),
        ("group_name", "varchar", "", "communication group"),
        ("src_rank", "bigint", "", "sender; null for all links of a transport"),
        ("dst_rank", "bigint", "", "receiver; null for all links of a transport"),
        ("transport", "varchar", "", "kind of link: LOCAL, SDMA, HCCS, RDMA, PCIE, SIO"),
        ("bytes", "bigint", "bytes", "moved"),
        ("dur_ns", "bigint", "ns", "time it took"),
    ),
    _table(
        "rollup",
        "repetition of a rank: what reports on many runs need, computed from the other tables",
        ("made_of", "varchar", "", "hash of tables and of the rules' version: if it differs, the row is made again"),
        *_ROLLUP,
    ),
    _table(
        "kept_answer",
        "row of the answer to a query of the report; of all ranks",
        ("made_of", "varchar", "", "hash of the tables and the queries: if it differs, the tables are queried"),
        ("query", "varchar", "", "name of the query"),
        ("asked", "varchar", "", "its parameters, as JSON"),
        ("place", "bigint", "", "position of the row, from 1; row 0 has the number of rows"),
        ("row_text", "varchar", "", "values in the order of the query's columns, as JSON"),
    ),
    _table(
        "fleet_rank",
        "repetition of a rank of a run, of many runs; a run of which nothing is known has one row. Empty in a run",
        ("run", "varchar", "", "folder of the run"),
        ("run_id", "varchar", "", "its id; null when its manifest is damaged"),
        ("state", "varchar", "", "complete | partial | failed | running | damaged"),
        ("problem", "varchar", "", "why it is not complete; null when it is"),
        ("started_at", "varchar", "", "when it began, in UTC, as text that can be sorted"),
        ("week", "varchar", "", "the Monday of that week, such as 2026-11-23"),
        ("workload", "varchar", "", "name of what was run: the script without its folder and ending"),
        ("source", "varchar", "", "collect | profile | import:KIND"),
        ("machine", "varchar", "", "class of the machine: CPU model, cores, memory, device"),
        ("conditions", "varchar", "", "hash of machine, versions, settings: times are compared where it is equal"),
        ("host", "varchar", "", "name of the host, or a hash of it; null when not known"),
        ("revision", "varchar", "", "commit of the training's code; null when not known"),
        ("mindspore", "varchar", "", "version of MindSpore; null when not known"),
        *_ROLLUP,
    ),
    _table(
        "chosen",
        "operator that a question is about; empty in a run",
        ("op_id", "bigint", "", "see op_info"),
        ("place", "bigint", "", "position in an order that SQL does not have; null when that is not asked for"),
    ),
    _table(
        "side_fact",
        "text that is the same in every repetition of one side of a comparison; empty in a run",
        ("side", "varchar", "", "base | new"),
        ("name", "varchar", "", "such as `op NAME`, `stage NAME`"),
        ("value", "varchar", "", "type and shapes, or settings"),
    ),
)

BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
