"""Keeps the script's own profiler whole: the op recorder is one per process, and ours would end its profile."""

from . import recorder, torch_ops, windows


def install_classes(module):
    """From the moment the script makes a profiler object, no more windows of ours."""
    for name in ("Profiler", "Profile"):
        owner = getattr(module, name, None)
        if owner is not None and "__init__" in owner.__dict__:
            _before(owner, "__init__", _forbid)


def install_platform(module):
    """Whatever started it: our window must be closed first, and we remember where its files go."""
    for owner in list(vars(module).values()):
        if isinstance(owner, type) and owner.__module__ == module.__name__ and "start" in owner.__dict__:
            _before(owner, "start", _started)
            if "stop" in owner.__dict__:
                _before(owner, "stop", _stopped)


def install_torch(module):
    """torch.autograd.profiler: the class that all of PyTorch's profilers begin and end with."""
    _before(module.profile, "_prepare_trace", _torch_started)
    _before(module.profile, "__exit__", _torch_stopped)


def _before(owner, name, call):
    original = getattr(owner, name)

    def hooked(self, *args, **kwargs):
        try:
            call(self)
        except Exception:
            recorder.REC.failed("profiler")
        return original(self, *args, **kwargs)

    hooked.__wrapped__ = original
    hooked.__name__ = name
    hooked.__doc__ = original.__doc__
    setattr(owner, name, hooked)


def _forbid(_self):
    if not recorder.REC.off:
        windows.WINDOWS.forbid(windows.LEFT_TO_USER % "mindspore.profiler")


def _started(self):
    windows.USERS_PROFILES[0] += 1  # also while nothing is recorded: a recording may begin meanwhile
    if recorder.REC.off:
        return
    windows.WINDOWS.forbid(windows.LEFT_TO_USER % "mindspore.profiler")
    context = getattr(self, "_prof_ctx", None)
    folder = getattr(context, "framework_path", None)
    recorder.REC.event("user_profile", folder=str(folder) if folder else None, **recorder.clock())


def _stopped(_self):
    windows.USERS_PROFILES[0] = max(0, windows.USERS_PROFILES[0] - 1)
    if not recorder.REC.off:
        recorder.REC.event("user_profile_end")


def _torch_started(self):
    self.is_pipeprof = torch_ops.OWN[0]
    if not self.is_pipeprof:
        windows.USERS_PROFILES[0] += 1
        if not recorder.REC.off:
            windows.WINDOWS.forbid(windows.LEFT_TO_USER % "torch.profiler")


def _torch_stopped(self):
    if not getattr(self, "is_pipeprof", True):
        self.is_pipeprof = True
        windows.USERS_PROFILES[0] = max(0, windows.USERS_PROFILES[0] - 1)
