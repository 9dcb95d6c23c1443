"""Draft a task from a file of rows: what its columns may be, and the task file that says so."""
