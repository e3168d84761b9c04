"""Where steps begin and end, from a process's marks. Pure: marks in, steps out.

Order of evidence: steps that the program names; callbacks of Model; optimizer updates (or graph calls that hold one);
rows of the iterator. A step ends where the next one asks for its batch; callbacks belong to the step they follow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeprof.read.spool.process import OTHER_THREAD, Kind, Mark

ROW = 0  # flag of a fetch that returned a batch
GRADIENT = 3  # flag of a call: a PyNative forward begins
EVALUATION = 2  # flag of a part: `Model.eval` as a whole
ZIPPED_SHARE = 0.9
TRAIN, EVAL, LOOK = "train", "eval", "look"  # roles of iterators
ROWS, READS = "rows", "reads"  # evidence: batches alone; READS where no network was seen at work
LOOK_ROWS = 8  # of an iterator that is only looked at before the training, at most


@dataclass
class Step:
    """One step: times in ns of the monotonic clock; `fetches` are its marks of rows, in order."""

    kind: str
    start: int
    end: int
    epoch: int | None = None
    fetches: list[Mark] = field(default_factory=list)
    updates: int = 0
    worked: bool = False  # the network was seen at work in it

    @property
    def handed_over(self) -> int | None:
        """When the first forward could start: the end of the last fetch before any iterator is asked a second time."""
        seen: set[int] = set()
        end = None
        for fetch in self.fetches:
            if fetch.subject in seen:
                break
            seen.add(fetch.subject)
            end = fetch.end
        return end

    @property
    def input_ns(self) -> int | None:
        """Time until the first forward could start, and inside iterators after that; None when nothing was fetched."""
        ready = self.handed_over
        if ready is None:
            return None
        return ready - self.start + sum(max(0, fetch.end - max(ready, fetch.begin)) for fetch in self.fetches)


@dataclass
class Steps:
    """The steps in order of start, what they were told from, and how often each kind of evidence was seen.

    `looks`: rows of iterators that led to nothing, in order.
    """

    steps: list[Step]
    evidence: str
    counts: dict[str, int]
    looks: list[Mark] = field(default_factory=list)


def is_row(mark: Mark) -> bool:
    """Whether it is a fetch that returned a batch."""
    return mark.kind == Kind.FETCH and mark.flag & ~OTHER_THREAD == ROW


def has_trained(marks: Iterable[Mark]) -> bool:
    """Whether a process was seen to train, not only to read rows."""
    return any(mark.kind in (Kind.UPDATE, Kind.TRAIN_STEP, Kind.STEP) for mark in marks)


def find_steps(
    marks: Sequence[Mark], hidden: Iterable[int], keys: Mapping[int, str], *, beside_training: bool = False
) -> Steps:
    """Steps of one process.

    `hidden`: iterators that are not the training loop's own. `keys`: pipeline key per iterator; iterators that are the
    same pipeline again play the same role. `beside_training`: another process of the command trains, so that one which
    only reads rows evaluates.
    """
    unseen = set(hidden)
    own = [mark for mark in marks if mark.kind != Kind.FETCH or mark.subject not in unseen]
    if any(mark.kind == Kind.STEP for mark in own):
        return Steps(_named_steps(own), "named", _counts(own))
    model, loop = _split(own)
    steps = _model_steps(model)
    roles = _roles(loop, keys, min((step.start for step in steps if step.kind == "train"), default=None))
    loop_steps = _LoopReader(roles, keys).read(loop)
    evaluated = sorted((mark.begin, mark.end) for mark in loop if mark.kind == Kind.PART and mark.flag == EVALUATION)
    leave_out([step for step in loop_steps if step.kind != "eval"], evaluated, loop)
    evidence = _evidence(steps, loop_steps, own)
    steps = sorted([*steps, *loop_steps], key=lambda step: (step.start, step.end))
    if beside_training and evidence in (ROWS, READS):
        steps = [replace(step, kind="eval") for step in steps]
    _mark_warmup(steps, [mark for mark in marks if mark.kind == Kind.COMPILE])
    looks = [mark for mark in loop if is_row(mark) and roles[mark.subject] == LOOK]
    return Steps(steps, evidence, _counts(own), looks)


def leave_out(steps: Sequence[Step], work: Sequence[tuple[int, int]], marks: Sequence[Mark]) -> None:
    """Take time in which the training stood still (`work`: in order, ns) out of the step at whose edge it lies.

    At its beginning if nothing of the step was marked before it, at its end if nothing was after it; else it stays.
    """
    own = [mark for mark in marks if mark.kind in (Kind.FETCH, Kind.UPDATE, Kind.CALL)]
    begins, ends = sorted(mark.begin for mark in own), sorted(mark.end for mark in own)
    starts = [step.start for step in steps]
    for begin, end in work:
        at = bisect_left(starts, end) - 1
        if begin >= end or at < 0 or steps[at].end <= begin:
            continue
        step = steps[at]
        if bisect_left(begins, step.start) == bisect_left(begins, begin):
            step.start = min(max(step.start, end), step.end)
        elif bisect_right(ends, end) == bisect_right(ends, step.end):
            step.end = max(begin, step.start)


def _named_steps(marks: Sequence[Mark]) -> list[Step]:
    """The steps that the program named itself (`profile.step()`): whatever happens in between belongs to them."""
    steps = []
    rows = sorted((mark for mark in marks if is_row(mark)), key=lambda m: m.begin)
    begins = [row.begin for row in rows]
    updates = sorted(mark.begin for mark in marks if mark.kind == Kind.UPDATE)
    compiles = sorted(mark.begin for mark in marks if mark.kind == Kind.COMPILE)
    for mark in sorted((m for m in marks if m.kind == Kind.STEP), key=lambda m: m.begin):
        warm = mark.flag or not mark.number or _between(compiles, mark)
        epoch = mark.subject - 1 if mark.subject else None
        fetches = rows[bisect_left(begins, mark.begin) : bisect_left(begins, mark.end)]
        kind = "warmup" if warm else "train"
        steps.append(Step(kind, mark.begin, mark.end, epoch, fetches, _between(updates, mark)))
    return steps


def _between(times: Sequence[int], mark: Mark) -> int:
    return bisect_left(times, mark.end) - bisect_left(times, mark.begin)


def _split(marks: Sequence[Mark]) -> tuple[list[Mark], list[Mark]]:
    """Marks inside Model.train, fit and eval, and the others; in order of their end."""
    inside: list[Mark] = []
    outside: list[Mark] = []
    depth = 0
    for mark in marks:
        if mark.kind in (Kind.TRAIN_BEGIN, Kind.EVAL_BEGIN):
            depth += 1
        (inside if depth else outside).append(mark)
        if mark.kind in (Kind.TRAIN_END, Kind.EVAL_END):
            depth = max(0, depth - 1)
    return inside, outside


def _model_steps(marks: Sequence[Mark]) -> list[Step]:
    """Steps of Model.train and Model.eval; an evaluation may run inside a training callback."""
    steps: list[Step] = []
    fetches: dict[bool, list[Mark]] = {False: [], True: []}
    start: dict[bool, int | None] = {False: None, True: None}
    evaluating = 0
    for mark in marks:
        in_eval = evaluating > 0
        if mark.kind == Kind.FETCH:
            if is_row(mark):
                fetches[in_eval].append(mark)
            if start[in_eval] is None:
                start[in_eval] = mark.begin
        elif mark.kind in (Kind.TRAIN_BEGIN, Kind.EPOCH_BEGIN):
            start[False], fetches[False] = mark.end, []
        elif mark.kind == Kind.EPOCH_END:
            start[False] = None
        elif mark.kind == Kind.EVAL_BEGIN:
            evaluating += 1
            start[True], fetches[True] = mark.end, []
        elif mark.kind == Kind.EVAL_END:
            evaluating = max(0, evaluating - 1)
        elif mark.kind in (Kind.TRAIN_STEP, Kind.EVAL_STEP):
            is_eval = mark.kind == Kind.EVAL_STEP
            began = start[is_eval]
            steps.append(
                Step(
                    kind="eval" if is_eval else "train",
                    start=mark.begin if began is None else began,
                    end=mark.end,
                    epoch=None if is_eval or not mark.subject else mark.subject - 1,
                    fetches=fetches[is_eval],
                    updates=0,
                )
            )
            start[is_eval], fetches[is_eval] = mark.end, []
    return steps


def _roles(marks: Sequence[Mark], keys: Mapping[int, str], trained_from: int | None) -> dict[int, str]:
    """`train`, `eval` or `look` for each iterator of hand-written loops, by what follows its rows.

    `trained_from`: the first step of `Model.train`, beside which a loop without an update is none of training.

    An iterator trains when an update follows one of its rows (calls of graphs without an optimizer may lie between), or
    when nearly all its rows are followed at once by a row of one that does (two datasets read side by side). One with a
    single row plays the role of the same pipeline's others. Several rows of a pipeline between another's row and an
    update count only where that is so at nearly all updates: else they are of an evaluation, with the batch in hand.

    The others evaluate, but one that was left after one row, or before the training after a few, with which the network
    was not called: it was looked at.
    """
    events = [mark for mark in marks if mark.kind in (Kind.FETCH, Kind.UPDATE, Kind.CALL)]
    numbers = {mark.subject for mark in events if mark.kind == Kind.FETCH}
    updated_at = [mark.begin for mark in events if mark.kind == Kind.UPDATE]
    updated_at += [] if trained_from is None else [trained_from]
    if not updated_at:
        return dict.fromkeys(numbers, TRAIN)
    looked_at = _looked_at(events, min(updated_at))
    rows: Counter[int] = Counter()
    updated: Counter[int] = Counter()
    followed: dict[int, Counter[int]] = defaultdict(Counter)
    unsure: Counter[str] = Counter()  # updates behind several rows of a pipeline and one of another
    since: list[str] = []  # pipelines of the rows since the last update
    updates = 0
    row: Mark | None = None
    called = False
    for mark in events:
        if mark.kind == Kind.CALL:
            called = True
            continue
        if mark.kind == Kind.FETCH and not is_row(mark):
            continue
        if row is not None and mark.kind == Kind.UPDATE:
            key = keys.get(row.subject, str(row.subject))
            if 1 < since.count(key) < len(since):
                unsure[key] += 1
            else:
                updated[row.subject] += 1
            updates, since = updates + 1, []
        elif row is not None and not called:
            followed[row.subject][mark.subject] += 1
        row, called = None, False
        if mark.kind == Kind.FETCH:
            row = mark
            rows[mark.subject] += 1
            since.append(keys.get(mark.subject, str(mark.subject)))
    often = {key for key, count in unsure.items() if count >= ZIPPED_SHARE * updates}
    training = {number for number in rows if updated[number] or keys.get(number, str(number)) in often}
    beside = {
        number
        for number in rows
        if number not in training
        and sum(followed[number][other] for other in training) >= ZIPPED_SHARE * rows[number] > 1
    }
    keys_training = {keys.get(number) for number in training}
    roles = {}
    for number in numbers:
        same = rows[number] < 2 and keys.get(number) in keys_training
        is_training = number in training or number in beside or same
        roles[number] = TRAIN if is_training else LOOK if number in looked_at else EVAL
    return roles


def _looked_at(events: Sequence[Mark], first: int) -> set[int]:
    """Iterators that were left after a few rows with none of which the network was called; `first` update, ns."""
    rows: Counter[int] = Counter()
    ends: dict[int, int] = {}
    used: set[int] = set()
    row: Mark | None = None
    for mark in events:
        if mark.kind == Kind.FETCH and not is_row(mark):
            used.add(mark.subject)
        elif mark.kind == Kind.FETCH:
            row = mark
            rows[mark.subject] += 1
            ends[mark.subject] = mark.end
        elif row is not None:
            used.add(row.subject)
            row = None if mark.kind == Kind.UPDATE else row
    return {
        number
        for number, count in rows.items()
        if number not in used and count <= (LOOK_ROWS if ends[number] <= first else 1)
    }


class _LoopReader:
    """Steps of hand-written loops. A group collects fetches and updates until the next step asks for its batch.

    Without a fetch in between, a step ends with its last update and the next one begins there.
    """

    def __init__(self, roles: Mapping[int, str], keys: Mapping[int, str]) -> None:
        self.roles = roles
        self.keys = keys
        self.steps: list[Step] = []
        self.fetches: list[Mark] = []
        self.units: Counter[int] = Counter()
        self.begin: int | None = None
        self.last_end = 0
        self.forward: int | None = None
        self.finish: int | None = None  # end of the step just closed, while nothing else came between
        self.passes: Counter[str] = Counter()
        self.rows: Counter[int] = Counter()
        self.stopped: set[int] = set()
        self.epochs: dict[Mark, int] = {}
        self.epoch = 0
        self.open_eval: Step | None = None
        self.by_rows = False
        self.used = False  # whether the network was called since the group's first row

    def read(self, marks: Sequence[Mark]) -> list[Step]:
        """All steps of these marks."""
        self.by_rows = not any(mark.kind == Kind.UPDATE for mark in marks)
        for mark in marks:
            if mark.kind == Kind.FETCH:
                self._fetch(mark)
            elif mark.kind == Kind.UPDATE:
                self._update(mark)
            elif mark.kind == Kind.CALL:
                self._call(mark)
        left = {mark.subject for mark in self.fetches} if self.used else set()
        if not self.by_rows or not self.fetches or self.last_end > self.fetches[-1].end:
            self._close(None)  # else nothing came of the last rows: the loop was left, or it raised
        self._close_eval(None)
        return self._worked(left)

    def _worked(self, at_work: set[int]) -> list[Step]:
        """Without rows of iterators that the network was never seen at work with, where it was with another's.

        `at_work`: iterators whose last row it was at work with when everything ended.
        """
        if not self.by_rows:
            return self.steps
        at_work |= {fetch.subject for step in self.steps if step.worked for fetch in step.fetches}
        return [
            step
            for step in self.steps
            if step.kind == "eval" or not at_work or any(fetch.subject in at_work for fetch in step.fetches)
        ]

    def _fetch(self, mark: Mark) -> None:
        self._close_eval(mark.begin)
        role = self.roles.get(mark.subject)
        if role in (EVAL, LOOK):
            self._close(mark.begin)
            self.finish = None
            if is_row(mark) and role == EVAL:
                self.open_eval = Step("eval", mark.begin, mark.end, fetches=[mark])
            return
        if self.units or (self.by_rows and self.fetches):
            self._close(mark.begin)
        if not is_row(mark):
            self.stopped.add(mark.subject)
            return
        self._drop_unused(mark)
        self._count_pass(mark)
        if self.begin is None:
            self.begin = mark.begin if self.finish is None else max(mark.begin, self.finish)
        self.fetches.append(mark)
        self.last_end = mark.end

    def _drop_unused(self, mark: Mark) -> None:
        """A loop that was broken off after a fetch leaves a row that no step of the next iterator uses."""
        if self.rows[mark.subject]:
            return
        key = self._key(mark.subject)
        left = [
            old
            for old in self.fetches
            if old.subject == mark.subject or self._key(old.subject) != key or self.rows[old.subject] < 2
        ]
        if len(left) != len(self.fetches):
            self.fetches = left
            self.begin, self.finish = (left[0].begin if left else None), None

    def _count_pass(self, mark: Mark) -> None:
        """The epoch of a row: how often this pipeline was begun before, as a new iterator or after its end."""
        key = self._key(mark.subject)
        if not self.rows[mark.subject] or mark.subject in self.stopped:
            self.stopped.discard(mark.subject)
            self.passes[key] += 1
        self.rows[mark.subject] += 1
        self.epochs[mark] = self.passes[key] - 1

    def _key(self, number: int) -> str:
        return self.keys.get(number, str(number))

    def _update(self, mark: Mark) -> None:
        self._close_eval(mark.begin)
        if self.units[mark.subject]:
            self._close(None)
        if self.begin is None:
            forward = mark.begin if self.forward is None else self.forward
            self.begin = forward if self.finish is None else self.finish
        self.units[mark.subject] += 1
        self.last_end = mark.end

    def _call(self, mark: Mark) -> None:
        self.used = self.used or bool(self.fetches)
        if mark.flag == GRADIENT:
            self.forward = mark.begin if self.forward is None else self.forward
            return
        if self.open_eval is not None:
            self.open_eval.end = max(self.open_eval.end, mark.end)
        elif self.units or (self.by_rows and self.fetches):
            self.last_end = max(self.last_end, mark.end) if self.fetches else self.last_end

    def _close(self, end: int | None) -> None:
        """End the group at `end`, or at its last mark. Rows that were never used make no step."""
        if self.begin is not None and (self.units or (self.by_rows and self.fetches)):
            self.finish = self.last_end if end is None else max(end, self.last_end)
            updates = sum(self.units.values())
            if self.fetches:
                self.epoch = self.epochs[self.fetches[0]]
            worked = self.used or bool(updates)
            self.steps.append(Step("train", self.begin, self.finish, self.epoch, self.fetches, updates, worked))
        self.fetches, self.units, self.begin, self.forward, self.used = [], Counter(), None, None, False

    def _close_eval(self, end: int | None) -> None:
        if self.open_eval is not None:
            if end is not None:
                self.open_eval.end = end
            self.steps.append(self.open_eval)
            self.open_eval = None


def _evidence(model: Sequence[Step], loop: Sequence[Step], marks: Sequence[Mark]) -> str:
    if any(step.kind == "train" for step in model):
        return "callbacks"
    if any(step.updates for step in loop):
        return "updates"
    if any(step.fetches for step in loop):
        return ROWS if any(mark.kind not in (Kind.FETCH, Kind.PART) for mark in marks) else READS
    return "none"


def _counts(marks: Sequence[Mark]) -> dict[str, int]:
    names = {
        Kind.TRAIN_STEP: "train_step_callbacks",
        Kind.UPDATE: "updates",
        Kind.EVAL_STEP: "eval_step_callbacks",
        Kind.STEP: "named_steps",
    }
    counts: Counter[str] = Counter()
    for mark in marks:
        if mark.kind in names:
            counts[names[mark.kind]] += 1
        elif is_row(mark):
            counts["rows"] += 1
    return dict(counts)


def _mark_warmup(steps: Sequence[Step], compiles: Sequence[Mark]) -> None:
    """The first training step, and every one in which a graph was compiled."""
    begins = sorted(mark.begin for mark in compiles)
    training = [step for step in steps if step.kind == "train"]
    for number, step in enumerate(training):
        if number == 0 or bisect_left(begins, step.start) < bisect_left(begins, step.end):
            step.kind = "warmup"
