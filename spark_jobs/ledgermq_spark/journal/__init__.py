"""The journal: derived from the log, archived as Parquet."""
