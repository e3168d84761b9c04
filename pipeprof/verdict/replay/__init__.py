"""What a distributed step would take if nothing in it were slower than its peers: the step is executed again on paper.

`operations.py` sorts what was recorded, `graph.py` finds what waits for what, `schedule.py` executes it with any
durations, `slowdown.py` compares executions, `effects.py` says what stage, rank and input do to a pass, `causes.py`
decides by tables. After "Understanding Stragglers in Large Model Training Using What-if Analysis" (ByteDance, OSDI
2025).
"""
