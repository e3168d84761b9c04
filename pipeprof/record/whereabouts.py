"""What a process was in when it last said so: its Python stack, threads and workers that stand still, its queues."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

At = Annotated[int, msgspec.Meta(ge=-(1 << 61), le=1 << 61)]  # ns of the monotonic clock
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 61)]
Id = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]  # of a process, a thread, an iterator, an operator
Spent = Annotated[float, msgspec.Meta(ge=0, le=1e12)]  # seconds
MOST_FRAMES, MOST_STUCK = 16, 4  # that are kept with a run; the innermost frames


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that the recording knows: its kind, when it began, and of a fetch the iterator and the rows before it."""

    call: str
    since: At | None = None
    tree: Id | None = None
    rows: Count | None = None


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One frame of a Python stack. `own`: of the program, of no library. `call`: the known call that begins here."""

    file: str
    line: Id
    function: str
    own: bool
    call: Call | None = None

    @property
    def site(self) -> str:
        """file:line."""
        return f"{self.file}:{self.line}"


class Stuck(msgspec.Struct, frozen=True):
    """A thread or a worker process (`pid`) beside the main thread that has been in one thing for `for_ns`.

    `op_type` and `name` are of the dataset operator whose row it makes; None for a thread of the program's own.
    """

    pid: Id | None
    for_ns: At
    stack: tuple[Frame, ...]
    line: str
    op_type: str | None = None
    name: str | None = None


class Queue(msgspec.Struct, frozen=True):
    """How many batches or rows are ready behind an operator, and how many can be; from the newest sample."""

    op_type: str
    depth: Count
    capacity: Count


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process. `age_s`: since it last said where it is; None: it never did.

    `still_ns`: how long nothing had been recorded then. `calls`: of the network and the optimizer, begun so far.
    `queues` by the number of the iterator, from the training loop towards the sources.
    """

    age_s: Spent | None = None
    said_ns: At = 0
    still_ns: At = 0
    calls: Count = 0
    stack: tuple[Frame, ...] = ()
    line: str = ""
    stuck: tuple[Stuck, ...] = ()
    queues: dict[Id, tuple[Queue, ...]] = {}

    def as_kept(self) -> dict[str, Any]:
        """Its fields with stacks and threads as far as a run keeps them."""
        facts = {name: getattr(self, name) for name in Whereabouts.__struct_fields__}
        stuck = (msgspec.structs.replace(one, stack=_innermost(one.stack)) for one in self.stuck[:MOST_STUCK])
        return facts | {"stack": _innermost(self.stack), "stuck": tuple(stuck)}


def _innermost(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The innermost frames, and those further out that are the program's or a known call: what a place is read off."""
    rest = tuple(frame for frame in stack[MOST_FRAMES:] if frame.own or frame.call is not None)
    return (*stack[:MOST_FRAMES], *rest[:MOST_FRAMES])


class Live(Whereabouts, frozen=True, kw_only=True):
    """A process as it is now, or as it was when its command ended."""

    rep: int
    rank: int
    pid: int
    alive: bool
    ended: bool


class Last(Whereabouts, frozen=True, kw_only=True):
    """What a process was in at its end. `gone_s`: how long before the end of its command that was.

    `longest_step_ns`: its longest training step after the warm-up; None without any. `cpu_s`: CPU time that it had
    used, by its last samples and their pace; `cpu_limit_s`: how much it was allowed (`ulimit -t`).
    """

    gone_s: Spent = 0.0
    longest_step_ns: Count | None = None
    cpu_s: Spent | None = None
    cpu_limit_s: Count | None = None

    def as_live(self, rep: int, rank: int, pid: int, *, alive: bool, ended: bool) -> Live:
        """The same as it was then."""
        where = {name: getattr(self, name) for name in Whereabouts.__struct_fields__}
        return Live(rep=rep, rank=rank, pid=pid, alive=alive, ended=ended, **where)
