"""Importers: runs that other tools recorded, one file for each format.

An importer is pure: it turns documents into `Recordings`, which `ledger.runs.import_` records. A format is a file with
a table of `Format`s, and a line in `reader.FORMATS`.
"""
