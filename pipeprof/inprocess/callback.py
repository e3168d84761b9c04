"""A profile for `Model.train` and `Model.fit`, as a callback. Imports MindSpore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from pipeprof.errors import UsageError
from pipeprof.inprocess.profiler import profile as Profile  # noqa: N812 - a class, here

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class ProfileCallback(Callback):  # type: ignore[misc]
    """`model.train(2, data, callbacks=[ProfileCallback(schedule=...)])`: its steps are the steps of the profile.

    Takes a profile, or the settings of one. The steps of one training make one block; an epoch's first step begins
    with the epoch, so that an evaluation in between belongs to no step. `callback.profile` is the profile.
    """

    def __init__(self, profile: Profile | None = None, **settings: Any) -> None:
        super().__init__()
        if profile is not None and settings:
            raise UsageError(f"give either a profile or settings, found a profile and {', '.join(settings)}")
        self.profile = profile if profile is not None else Profile(**settings)
        self._on = False
        self._entered = 0  # Model.fit enters its callbacks again for each evaluation

    def __enter__(self) -> Self:
        if not self._entered:
            self.profile.arm()
        self._entered += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._entered -= 1
        if not self._entered:
            self._stop(error)

    def on_train_begin(self, run_context: Any) -> None:
        """Begin the block."""
        del run_context
        self.profile.start()
        self._on = True

    def on_train_epoch_begin(self, run_context: Any) -> None:
        """Let the first step of the epoch begin here."""
        del run_context
        if self._on:
            self.profile.begin_step()

    def on_train_step_end(self, run_context: Any) -> None:
        """A step is over."""
        epoch = run_context.original_args().get("cur_epoch_num")
        if self._on:
            self.profile.step(epoch=int(epoch) - 1 if epoch else None)

    def on_train_end(self, run_context: Any) -> None:
        """End the block."""
        del run_context
        self._stop(None)

    def _stop(self, error: BaseException | None) -> None:
        if self._on:
            self._on = False
            self.profile.stop(error)
