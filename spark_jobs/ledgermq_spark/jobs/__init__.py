"""Jobs to run by hand or by `spark-submit`: rebuild, tables, audit."""
