"""What enters the recorded process. Loaded by path in every Python of the process tree, so:

standard library only, any Python from 3.7 on, nothing of pipeprof, and silent: a failure here must never reach the
user's training. It writes to the spool and nowhere else.

    sitecustomize -> start() -> hooks on MindSpore's modules, set when they are imported
    recorder      the spool of this process: marks (fixed records), events (JSON lines), one flushing thread
    imports       calls us when a module has been imported
    dataset       iterators: fetches, trees, queue samples        describe   what a dataset is made of
    override, cached   other settings, or one batch for ever: for runs that measure what a change would buy
    digest        fingerprints of the first batches: whether a changed pipeline hands out the same
    slow          every step takes a share longer: for runs that measure what the gate sees
    stop          the process ends after so many steps: for runs of an experiment
    callables, workers   times of the user's Python in the dataset: in threads, and in worker processes
    service       per-operator service times from the dataset's own log lines
    steps         step ends, optimizer updates, graph calls, compilation; tells windows when a step is over
    around        evaluations, checkpoints, callbacks, and what was compiled
    graphs        what compiled graphs consist of         operands   what a PyNative step calls operators with
    windows       operator executions in windows                  profiler_guard   keeps the user's profiler whole
    live          where the process is, once a second, for who asks whether it hangs
    forks         which line made each process        threads   which threads are Python's
    inprocess     the same, started and ended by the program itself (`pipeprof.profile`)
"""


def start():
    """Set the hooks. Called once per process, before the user's code, so it imports next to nothing."""
    import os
    import sys

    from . import forks, imports, recorder

    argv = getattr(sys, "orig_argv", sys.argv)
    if any("multiprocessing.resource_tracker" in part or "multiprocessing.semaphore_tracker" in part for part in argv):
        return
    recorder.open_recorder(os.environ["PIPEPROF_SPOOL"], os.environ.get("PIPEPROF_OPTIONS", "{}"))
    forks.install()
    imports.install()
