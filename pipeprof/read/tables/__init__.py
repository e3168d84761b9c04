"""Tables of what was read, whatever read it: no reader writes a file, or numbers an operator, in a way of its own.

arrow      Arrow arrays straight from NumPy's memory
writer     a table of a rank, piece by piece: one encoding, bounded memory, limits
rows       rows of a rank that wait in memory         streamed   the same, written as they come
operators  operators as numbers, within limits        steps      which step a time lies in
ranks      shares of an import, one after the other or in several processes (worker)
outcome    what was left out and damaged, and what the files do not hold, into the manifest
"""
