"""What enters the recorded process. Loaded by path in every Python of the process tree, so:

standard library only, any Python from 3.7 on, nothing of pipeprof, and silent: a failure here must never reach the
user's training. It writes to the spool and nowhere else.

    sitecustomize -> start() -> hooks on modules of MindSpore and PyTorch, set when they are imported
    recorder      the spool of this process: marks (fixed records), events (JSON lines), one flushing thread
    files         its descriptors, which the program may close or take for its own
    imports       calls us when a module has been imported
    dataset       iterators: fetches                       describe   what a dataset is made of
    trees, readings   queue samples of an iterator's tree, and what MindSpore remembers of them
    smaps, swap, sizes   what a queue sample costs, what it prints to stderr, and the bytes of a batch
    override, arguments   other settings of a dataset or a DataLoader, for runs that measure what that would buy
    cached, again   one batch for ever: for runs that measure what a perfect pipeline would buy
    stand_in, kept_rows, order   operators replaced, cached or moved, for runs that measure what that would buy
    digest, chance, constant   fingerprints of the first batches: whether a changed pipeline hands out the same
    slow          every step takes a share longer: for runs that measure what the gate sees
    iterables     looks at where the training waits for what has no hooks: a generator, another library's loader
    loop, stop    counts the steps; the process ends after so many of them: for runs of an experiment
    loaders, dataloader   other loaders, described by their stages; the DataLoaders of PyTorch and MindSpore
    callables, workers   times of the user's Python in the dataset: in threads, and in worker processes
    delay, gil    how long threads waited for a core, and how long Python code held the interpreter's lock
    service       per-operator service times from the dataset's own log lines
    steps         step ends, optimizer updates, graph calls, compilation; tells windows when a step is over
    optimizers    updates by optimizers of PyTorch
    trains, sections, syncs   whether a call trains; its forward, backward and update; where it waits for the network
    around        evaluations, checkpoints, callbacks, and what was compiled
    graphs        what compiled graphs consist of         operands   what a PyNative step calls operators with
    windows       operator executions in windows                  profiler_guard   keeps the user's profiler whole
    lines, cells, where   from which lines and cells the operators of a step are launched; the user's own line
    stacks        which Python the training is in, some 20 times a second
    live          where the process is, once a second, for who asks whether it hangs
    failure, cures   the exception that ended the process, and those whose cure is known
    forks         which line made each process        threads   which threads are Python's
    redact        passwords and tokens become `***`
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
