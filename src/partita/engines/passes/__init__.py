"""Passes over the rows of a table: log joints, responsibilities, statistics; in memory, by columns, on a device."""
