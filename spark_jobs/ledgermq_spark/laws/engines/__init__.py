"""Who answers the queries of laws: Spark, or DuckDB where everything is on one machine."""
