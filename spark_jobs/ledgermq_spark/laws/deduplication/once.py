"""Law Q: what a destination remembers it does not take again, and nothing else vanishes."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Breach, Law

AGAIN: Final = """
SELECT queue_manager, judged_at AS position, store, sequence, session,
    'a put was numbered though its id was remembered' AS summary,
    concat_ws(' ', deduplication_id, first_sequence) AS expected,
    concat_ws(' ', deduplication_id, sequence) AS found
FROM {known_ids} WHERE kind = 'Put' AND sequence IS NOT NULL AND first_sequence IS NOT NULL
"""
# A put that brings nothing says the number of the one that is remembered.
VANISHED: Final = """
SELECT queue_manager, replied_at AS position, coalesce(store, -1) AS store, -1 AS sequence, session,
    'a put vanished that was not put before as its writer was told' AS summary,
    coalesce(CAST(first_sequence AS STRING), 'its messages') AS expected, reply_number AS found
FROM (
    SELECT queue_manager, session, position, replied_at, reply_number, replied_at > position AS late
    FROM {applied} WHERE has_vanished
) LEFT JOIN (
    SELECT queue_manager, session, position, late, store, first_sequence FROM {known_ids}
) USING (queue_manager, session, position, late)
WHERE NOT first_sequence <=> reply_number
"""
LAW: Final = Law(
    letter="Q",
    sentence="Within the window of its destination a put of a deduplication id is put once; the "
    "next one vanishes and tells its number.",
    breaches=(Breach("duplicated", AGAIN), Breach("lost", VANISHED)),
)
