"""Law L: in a session each number acts once, and the numbers that act are dense."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

DENSE = """
WITH numbered AS (
    SELECT *, row_number() OVER (
        PARTITION BY queue_manager, session ORDER BY position) AS due
    FROM {applied}
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, session,
    'operations of a session acted out of their turn' AS summary,
    due AS expected, session_sequence AS found
FROM numbered WHERE session_sequence <> due
"""
LAW = Law(
    letter="L",
    sentence="In a session each number acts once, and the numbers that act are dense from 1.",
    breaches=(Breach("reordered", DENSE),),
)
