"""Tables of what was read, whatever read it: no reader writes a file, or numbers an operator, in a way of its own.

writer     a table of a rank, piece by piece: one encoding, bounded memory, limits; rows written as they come
rows       rows of a rank that wait in memory, its operators as numbers
steps      which step a time lies in
ranks      shares of an import, one after the other or in several processes (workers)
share      what is to be read of one rank; what came of it, was left out and damaged, into the manifest
"""
