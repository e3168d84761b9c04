"""A DataLoader is made with other arguments than those of the script: what `whatif` and `tune` measure.

The loader that is meant is known by the line that makes it. What the library refuses is not done, and recorded.
"""

import sys

from . import recorder, where, workers

NAMES = {"workers": "num_workers", "prefetch": "prefetch_factor", "persistent": "persistent_workers"}
ALONE = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}  # the loop makes its own batches


def install(loader):
    """Hook the class of a loader; nothing without the launcher's wish."""
    if (recorder.REC.options.get("override") or {}).get("loader"):
        workers.wrap(loader, "__init__", _with_arguments)


def _with_arguments(original):
    def __init__(self, *args, **kwargs):
        wanted = recorder.guarded("override", _wanted, original, (self, *args), kwargs)
        if wanted is None or not _is_made(original, self, *wanted):
            original(self, *args, **kwargs)

    return __init__


def _is_made(original, loader, node, before, bound):
    """Make it with the other arguments; whether the library took them."""
    try:
        original(*bound.args, **bound.kwargs)
    except Exception as error:
        recorder.REC.event("override_missed", why="%s: %s" % (type(error).__name__, error))
        return False
    after = {name: getattr(loader, NAMES[name], None) for name in before}
    recorder.REC.event("override", node=node, before=before, after=after)
    return True


def _wanted(original, args, kwargs):
    """The stage that stands for a loader, what that was to be made with of what is changed, and all arguments now.

    None for a loader that is not meant.
    """
    import inspect

    override = recorder.REC.options.get("override")
    if override.get("site") != where.site(sys._getframe(1)):
        return None
    spec = override.get("changes", [override])[0]
    try:
        bound = inspect.signature(original).bind(*args, **kwargs)
    except TypeError:  # the library will say so
        return None
    made = dict(ALONE, **bound.arguments)
    before = {name: made[argument] for name, argument in NAMES.items() if spec.get(name) is not None}
    bound.arguments.update((NAMES[name], spec[name]) for name in before)
    if spec.get("workers") == 0:
        bound.arguments.update(ALONE)
    return spec.get("node"), before, bound
