"""The sections of docs/tables.md: one function for each kept result."""
