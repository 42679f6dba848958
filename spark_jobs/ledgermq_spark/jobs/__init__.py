"""Jobs of Spark for `python -m` or `spark-submit`: rebuild, tables, audit."""
