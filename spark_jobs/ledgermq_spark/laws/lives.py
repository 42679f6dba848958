"""Law A: a message makes legal moves, each from where the one before left it, and ends once."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

# The states of PROTOCOL.md §5 and where a message may go from each; of what is gone, why.
LEGAL = """
    ('new', 'uncommitted put', ''), ('new', 'unborn', ''), ('new', 'available', ''),
    ('new', 'published', ''), ('new', 'gone', 'moved'), ('new', 'gone', 'dropped'),
    ('uncommitted put', 'unborn', ''), ('uncommitted put', 'available', ''),
    ('uncommitted put', 'published', ''), ('uncommitted put', 'gone', 'moved'),
    ('uncommitted put', 'gone', 'dropped'),
    ('uncommitted put', 'gone', 'purged'), ('uncommitted put', 'gone', 'rolled back'),
    ('unborn', 'available', ''), ('unborn', 'gone', 'expired'), ('unborn', 'gone', 'moved'),
    ('unborn', 'gone', 'dropped'), ('unborn', 'gone', 'removed'), ('unborn', 'gone', 'purged'),
    ('available', 'unacknowledged', ''), ('available', 'uncommitted get', ''),
    ('available', 'gone', 'expired'), ('available', 'gone', 'displaced'),
    ('available', 'gone', 'moved'),
    ('available', 'gone', 'dropped'), ('available', 'gone', 'removed'),
    ('available', 'gone', 'purged'),
    ('unacknowledged', 'available', ''), ('unacknowledged', 'delayed', ''),
    ('unacknowledged', 'gone', 'consumed'), ('unacknowledged', 'gone', 'expired'),
    ('unacknowledged', 'gone', 'moved'), ('unacknowledged', 'gone', 'dropped'),
    ('unacknowledged', 'gone', 'removed'),
    ('uncommitted get', 'available', ''), ('uncommitted get', 'delayed', ''),
    ('uncommitted get', 'gone', 'consumed'), ('uncommitted get', 'gone', 'expired'),
    ('uncommitted get', 'gone', 'moved'), ('uncommitted get', 'gone', 'dropped'),
    ('uncommitted get', 'gone', 'removed'),
    ('delayed', 'available', ''), ('delayed', 'gone', 'expired'), ('delayed', 'gone', 'moved'),
    ('delayed', 'gone', 'dropped'), ('delayed', 'gone', 'removed'), ('delayed', 'gone', 'purged'),
    ('published', 'gone', 'consumed'), ('published', 'gone', 'expired'),
    ('published', 'gone', 'displaced'), ('published', 'gone', 'moved'),
    ('published', 'gone', 'dropped')
"""
ILLEGAL = f"""
SELECT queue_manager, position, store, sequence, session,
    'a message made a move that there is not' AS summary,
    'a move of the protocol' AS expected,
    concat_ws(' ', before, 'to', after, cause) AS found
FROM {{moves}} LEFT ANTI JOIN (VALUES {LEGAL}) AS legal (before, after, cause)
    USING (before, after, cause)
"""
# Within an entry a message that is numbered may move again, in the order of the steps.
BROKEN = """
WITH told AS (
    SELECT *, lag(after) OVER (
        PARTITION BY queue_manager, store, kind, sequence ORDER BY position, step) AS left_in
    FROM {moves} WHERE sequence >= 0
)
SELECT queue_manager, position, store, sequence, session,
    'a message moved from where it was not' AS summary,
    coalesce(left_in, 'new or uncommitted put') AS expected, before AS found
FROM told
WHERE IF(left_in IS NULL, before NOT IN ('new', 'uncommitted put'), before <> left_in)
"""
# Without a number a message is known by its Put.
OPEN = """
WITH told AS (
    SELECT *, lag(after) OVER (
        PARTITION BY queue_manager, store, kind, put_position, put_index
        ORDER BY position, step) AS left_in
    FROM {moves} WHERE 'uncommitted put' IN (before, after)
)
SELECT queue_manager, position, store, sequence, session,
    'an open put began or ended twice, or ended without a beginning' AS summary,
    IF(after = 'uncommitted put', 'no open put', 'an open put') AS expected,
    coalesce(left_in, 'nothing') AS found
FROM told
WHERE (before = 'uncommitted put') <> coalesce(left_in = 'uncommitted put', FALSE)
"""
LAW = Law(
    letter="A",
    sentence="A message makes legal moves only, each from where the one before left it, and its "
    "life ends at most once.",
    breaches=(
        Breach("state mismatch", ILLEGAL),
        Breach("duplicated", BROKEN),
        Breach("duplicated", OPEN),
    ),
)
