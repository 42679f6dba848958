"""PySpark jobs that rebuild, audit and report on a LedgerMQ operations log."""
