"""Law A: a message makes legal moves, each from where the one before left it, and ends once."""

from ledgermq_spark.laws.law import Law, duplicated, state_mismatch

# The states of PROTOCOL.md §5, and where a message may go from each; of what is gone, why.
LEGAL = {
    "new": "uncommitted put, unborn, available, published, gone moved, gone dropped",
    "uncommitted put": "unborn, available, published, gone moved, gone dropped, gone purged, "
    "gone rolled back",
    "unborn": "available, gone expired, gone moved, gone dropped, gone removed, gone purged",
    "available": "unacknowledged, uncommitted get, gone expired, gone displaced, gone moved, "
    "gone dropped, gone removed, gone purged",
    "unacknowledged": "available, delayed, gone consumed, gone expired, gone moved, gone dropped, "
    "gone removed",
    "uncommitted get": "available, delayed, gone consumed, gone expired, gone moved, "
    "gone dropped, gone removed",
    "delayed": "available, gone expired, gone moved, gone dropped, gone removed, gone purged",
    "published": "gone consumed, gone expired, gone displaced, gone moved, gone dropped",
}
MOVES = ", ".join(f"('{one}', '{to}')" for one in LEGAL for to in LEGAL[one].split(", "))
ILLEGAL = state_mismatch(f"""
SELECT queue_manager, position, store, sequence, session,
    'a message made a move that there is not' AS summary,
    'a move of the protocol' AS expected,
    concat_ws(' ', before, 'to', after, cause) AS found
FROM (SELECT *, trim(concat(after, ' ', cause)) AS went FROM {{moves}})
    LEFT ANTI JOIN (VALUES {MOVES}) AS legal (before, went) USING (before, went)
""")
# Within an entry a message that is numbered may move again, in the order of the steps.
BROKEN = duplicated("""
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
""")
# Without a number a message is known by its Put.
OPEN = duplicated("""
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
""")
LAW = Law(
    letter="A",
    sentence="A message makes legal moves only, each from where the one before left it, and its "
    "life ends at most once.",
    breaches=(ILLEGAL, BROKEN, OPEN),
)
