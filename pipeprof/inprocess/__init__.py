"""The recorder of `pipeprof collect`, used from the program itself: `pipeprof.profile` and what belongs to it.

actions    the schedule: what is done in which step            activities  what can be recorded
profiler   `profile`: context manager and decorator            callback    `ProfileCallback` for Model.train
recording  one run: folder, spool, samples of the machine      owner       who records in this process
spans      `record_function`                                   averages    `key_averages()` and its table
decorate   blocks around functions, generators, coroutines     endings     how blocks end, what is said then
pytest_plugin   the marker and the fixture
"""
