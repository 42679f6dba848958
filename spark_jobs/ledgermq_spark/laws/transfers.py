"""Law I: what leaves for elsewhere arrives once, and what nobody put came from somewhere."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law
from ledgermq_spark.laws.storage import relocations

# What is moved arrives; what expires does where its destination says so.
TRANSFERRED = """
WITH
left_for AS (
    SELECT queue_manager, position, put_position, put_index,
        count_if(cause = 'moved') AS must, count(*) AS may
    FROM {moves} WHERE cause IN ('moved', 'expired') AND before <> 'published'
    GROUP BY ALL
),
arrived AS (
    SELECT queue_manager, position, put_position, put_index, count(*) AS came, max(store) AS store,
        max(sequence) AS sequence
    FROM {moves} WHERE before = 'new' AND session < 0 AND kind <> 'subscription'
    GROUP BY ALL
),
copied AS (
    SELECT queue_manager, position FROM {operations} WHERE kind = 'CopyMessages'
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    -1 AS session,
    IF(must > coalesce(came, 0), 'a message left for elsewhere and did not arrive',
        'a message came from nowhere') AS summary,
    coalesce(must, 0) AS expected, coalesce(came, 0) AS found
FROM left_for FULL JOIN arrived USING (queue_manager, position, put_position, put_index)
    LEFT ANTI JOIN copied USING (queue_manager, position)
WHERE coalesce(came, 0) NOT BETWEEN coalesce(must, 0) AND coalesce(may, 0)
"""
LAW = Law(
    letter="I",
    sentence="What leaves a destination for another one arrives there once, at the same position; "
    "what nobody put or copied came from somewhere; its body stands where it was written last.",
    breaches=(
        Breach("lost", TRANSFERRED),
        Breach("altered outcome", relocations.COUNTED),
        Breach("altered copy", relocations.ALTERED),
        Breach("state mismatch", relocations.STANDING),
        Breach("state mismatch", relocations.CARRIED),
    ),
)
