"""The folder a worker writes into while it records: JSON lines, one file per kind of row, flushed as they come.

What was written survives whatever happens to the worker afterwards. The parent reads the folder back
as a ``Profile`` (``read_journal``) and packs it into one file.
"""
