"""Floor 2: finds the .sql files, reads their headers and runs them on DuckDB over runs."""
