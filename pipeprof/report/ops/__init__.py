"""Operator tables: profile_analyze's, operator by operator or added up, and key_averages', in groups.

question  what is asked for, checked; names, aliases and order of columns
single    operators one by one, or by type     groups   groups of executions
content   rows and totals, ready to print; numbers and shapes as text
show      prints a table, or writes it to a file; why one is empty
"""
