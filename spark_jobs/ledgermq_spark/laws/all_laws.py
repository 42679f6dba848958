"""All laws that there are, by their letters."""

from ledgermq_spark.laws import (
    conservation,
    deliveries,
    lives,
    numbers,
    puts,
    sessions,
    times,
    topics,
    transfers,
)
from ledgermq_spark.laws.limits import quotas, redelivery
from ledgermq_spark.laws.once import ids, sources
from ledgermq_spark.laws.order import judging
from ledgermq_spark.laws.refusals import refusals
from ledgermq_spark.laws.settling import settlements
from ledgermq_spark.laws.storage import segments

LAWS = (
    lives.LAW,
    numbers.LAW,
    puts.LAW,
    settlements.LAW,
    deliveries.LAW,
    judging.LAW,
    times.LAW,
    redelivery.LAW,
    transfers.LAW,
    topics.LAW,
    quotas.LAW,
    sessions.LAW,
    refusals.LAW,
    conservation.LAW,
    segments.LAW,
    sources.LAW,
    ids.LAW,
)
