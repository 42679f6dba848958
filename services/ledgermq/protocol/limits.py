"""Limits and constants of protocol version 1 that the fold decides by (PROTOCOL.md §3, §6)."""

from __future__ import annotations

import re
from typing import Final

FIRST_VERSION: Final = 1
# The highest that this code knows; it knows all below.
PROTOCOL_VERSION: Final = 1
PRIORITY_MAX: Final = 9
PUT_MESSAGES_MAX: Final = 10_000
SOURCE_CHARACTERS_MAX: Final = 512
SOURCE_POSITION_MAX: Final = 2**53
SOURCE_PARTITION_MAX: Final = 2**31 - 1
# Partitions of sources that a destination remembers.
SOURCES_MAX: Final = 1_000
# What a put may be known by, and how much of that a destination remembers.
DEDUPLICATION_ID_CHARACTERS_MAX: Final = 128
DEDUPLICATION_IDS_MAX: Final = 100_000
CONTENT_BYTES_MAX: Final = 8 * 1024 * 1024 - 4096
TIMING_MS_MAX: Final = 100 * 366 * 24 * 3600 * 1000
HEADER_BYTES_MAX: Final = 64 * 1024
# The size of a message is that of both.
MESSAGE_SIZE_BYTES_MAX: Final = CONTENT_BYTES_MAX + HEADER_BYTES_MAX
MESSAGE_ID_BYTES: Final = 16
GROUP_ID_BYTES: Final = 24
GROUP_SEQUENCE_MAX: Final = 999_999_999
OFFSET_MAX: Final = 2**53
AFFINITY_BUCKETS: Final = 1024
GROUP_MEMBERS_MAX: Final = 5_000
CREDIT_MAX: Final = 1_000_000
QUOTA_MAX: Final = 2**53
REPLIES_MAX: Final = 256
# Of one session; the window above bounds them too.
BLOCKED_PUTS_MAX: Final = 64
BLOCKED_MESSAGES_MAX: Final = 10_000
# Percent: a hundredfold.
REDELIVERY_MULTIPLIER_MAX: Final = 10_000
REDELIVERY_STEPS_MAX: Final = 100
# The numbers that a checkpoint holds as an Avro int; readers differ in what else they take.
CONSUMER_NUMBER_MAX: Final = 2**31 - 1
CONSUMER_PRIORITY_MIN: Final = -(2**31)
CONSUMER_PRIORITY_MAX: Final = 2**31 - 1
REDELIVERY_LIMIT_MAX: Final = 2**31 - 1
LANE_MAX: Final = 2**31 - 1
VERSION_MAX: Final = 2**31 - 1
DESCRIPTION_CHARACTERS_MAX: Final = 1024
LAST_VALUE_KEY_CHARACTERS_MAX: Final = 250
ACTOR_CHARACTERS_MAX: Final = 128
# What an Open says of its client, and shows to take its client id over.
CLIENT_CHARACTERS_MAX: Final = 1024
TAKEOVER_BYTES_MAX: Final = 1024
SELECTED_RANGES_MAX: Final = 1_000
# Of any list in an operation, such as its ranges of deliveries; a longer one is not even read.
LIST_ENTRIES_MAX: Final = 65_536
# So that the outcome of its commit fits into a record.
UNIT_OF_WORK_DESTINATIONS_MAX: Final = 10_000
# What a refusal shows of one text, and the whole of it.
QUOTED_CHARACTERS_MAX: Final = 160
DETAIL_CHARACTERS_MAX: Final = 4_096
# What one operation by hand touches, and how many numbers it looks at.
HANDLED_MESSAGES_MAX: Final = 10_000
NUMBERS_EXAMINED_MAX: Final = 20_000
# What one Relocate writes again, and how many live messages it may be about.
RELOCATED_MESSAGES_MAX: Final = 1_000
RELOCATED_PLACES_MAX: Final = 10_000
# How many parked groups a queue or subscription knows.
PARKED_GROUPS_MAX: Final = 10_000
SUSPECT_TIMEOUT_MS_MIN: Final = 1_000
SUSPECT_TIMEOUT_MS_MAX: Final = 45_000
BROWSE_EXAMINED_MAX: Final = 20_000
DELIVERED_MESSAGES_MAX: Final = 1_000
DELIVERED_CONTENT_BYTES_MAX: Final = 1024 * 1024
BLOCK_MESSAGES: Final = 1024
TIME_LEAP_US: Final = 60_000_000
# How fast state time goes on while it is ahead of the clock: a fraction that whole ms divide.
TIME_AHEAD_RATE: Final = (7, 8)
TIME_AGREEMENT_US: Final = 10_000_000
TIME_ROUNDING_US: Final = 50_000
UNCONFIRMED_SESSION_US: Final = 30_000_000

# What names of temporary destinations begin with.
TEMPORARY: Final = "temporary/"
# Of the name of a queue, a topic or a queue manager, and of a client id.
OBJECT_NAME_CHARACTERS_MAX: Final = 128
_NAME = re.compile(rf"[A-Za-z0-9._/%-]{{1,{OBJECT_NAME_CHARACTERS_MAX}}}", re.ASCII)


def is_name(text: str) -> bool:
    """Whether a text may name a queue or a queue manager."""
    return _NAME.fullmatch(text) is not None
