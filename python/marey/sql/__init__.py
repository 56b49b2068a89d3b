"""SQL over traces: on DuckDB in this process, on Parquet files, and on Spark."""
