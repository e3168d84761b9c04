"""Our own spool (what the probe and the launcher wrote) to the record's tables.

process  one process's marks and events        steps      where its steps begin and end
pipelines  its iterators, queues, fetches      operators  its op windows, FP and BP
account  the launcher's samples                convert    all of it into one run
"""
