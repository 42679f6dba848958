"""Bindings from when until when, and what they hand on (PROTOCOL.md §5, Bind)."""

from ledgermq_spark.laws.refusals.expressions import may_stand, spelled, stands

FRAMES: dict[str, str] = {}

# A binding is in force from the Bind that gave it its selector until the next Bind or the Unbind.
FRAMES["bindings"] = f"""
WITH told AS (
    SELECT queue_manager, replied_at AS from_position, kind, target AS destination,
        {spelled("selector")} AS selector, get_json_object(settings, '$.topics') AS topics,
        get_json_object(settings, '$.name') AS name
    FROM {{applied}} WHERE kind IN ('Bind', 'Unbind') AND reply <> 'Refused'
)
SELECT * EXCEPT (kind)
FROM (
    SELECT *, lead(from_position) OVER (
        PARTITION BY queue_manager, topics, destination ORDER BY from_position) AS until_position
    FROM told
)
WHERE kind = 'Bind'
"""
# Messages that sessions put to topics, with each destination that a binding hands them on to. One
# that began or ended at the entry itself may have done so before or after: `is_sure` is false.
FRAMES["bound"] = rf"""
WITH
published AS (
    SELECT queue_manager, destination AS topic, store, sequence, position, put_position, put_index,
        time_us
    FROM {{moves}}
    WHERE kind = 'topic' AND sequence >= 0 AND before IN ('new', 'uncommitted put')
        AND session >= 0 AND destination NOT LIKE 'topic:temporary/%'
),
offered AS (
    SELECT one.*, destination, selector,
        {stands("from_position", "until_position", "position")} AS is_there
    FROM published AS one JOIN {{bindings}} USING (queue_manager)
    WHERE {may_stand("from_position", "until_position", "position")} AND destination <> topic
        AND substr(topic, 7) RLIKE concat(r'\A', name, r'\z')
)
SELECT queue_manager, topic, store, sequence, position, put_position, put_index, destination,
    bool_or(is_there) AS is_sure
FROM offered JOIN {{puts}} USING (queue_manager, put_position, put_index)
WHERE suits(selector, IF(selector = '', NULL, struct(message_id, priority, persistent,
    offered.time_us, header)), FALSE)
GROUP BY ALL
"""
# Of the topics' messages, those that are handed on. A subscription that made its topic has the same
# number as that, and the messages too: their kinds tell them apart.
FRAMES["handed_on"] = """
SELECT queue_manager, 'topic' AS kind, store, sequence, bool_or(is_sure) AS is_sure FROM {bound}
GROUP BY ALL
"""
