"""Stretches of an archive as laws judge them: each a log of its own, behind what it needs to know.

What laws need to know of all that stood before a stretch (`laws.stretches`) is worked out once, of
the stretch before it and what was carried into that, and kept beside the stretches. So any of them
can be judged in one run, in any order. It lies below the digest chain at the stretch's end: where a
stretch was made anew, and ends elsewhere, what was kept of the one before does not count. What is
not as it was written is worked out again.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from ledgermq_spark.archive.archived import frames_of, is_long
from ledgermq_spark.archive.stretch import Stretch
from ledgermq_spark.laws.engines.choice import quickest_engine
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.laws.stretches.carried import CARRIED, carried
from ledgermq_spark.log.durable_files import (
    damage_of,
    settled_digests,
    sync,
    write_durably,
)
from ledgermq_spark.log.session import Spark
from ledgermq_spark.log.store import ParquetRows, Store

# The name of the stretch that a file is of: its directory. Braces of queries are doubled.
HERE: Final = "regexp_extract(file, '/([0-9]{{19}})/', 1)"
CHAIN_DIGITS: Final = 16
# The digests of all files, beside them.
WRITTEN: Final = "files.json"


def judged_facts(
    spark: Spark,
    stretches: Sequence[Stretch],
    chosen: Sequence[Stretch],
    store: Store,
) -> Facts:
    """Facts of those chosen of an archive's stretches, each a queue manager with its `name`."""
    names = {one.name for one in chosen}
    ends = [at for at, one in enumerate(stretches[1:]) if one.name in names]
    for end in ends:
        missing = takewhile(
            lambda at: not _is_whole(_place(stretches[at], store)), range(end, -1, -1)
        )
        for at in reversed([*missing]):
            _carry(spark, stretches[at], stretches[at - 1] if at else None, store)
    return _behind(spark, chosen, [stretches[at] for at in ends], store)


def _behind(
    spark: Spark,
    chosen: Sequence[Stretch],
    befores: Sequence[Stretch],
    store: Store,
) -> Facts:
    """Facts of stretches, with what was carried out of those before them."""
    engine = quickest_engine(spark, store, is_long=is_long(chosen))
    frames = frames_of(chosen, HERE, ends=chosen)
    facts = Facts(engine, engine.taken(frames))
    if not befores:
        return facts
    names = {one.first: one.name for one in chosen}
    behind = " ".join(f"WHEN '{one.name}' THEN '{names[one.last + 1]}'" for one in befores)
    query = f"""
SELECT * EXCEPT (file, queue_manager), CASE {HERE} {behind} END AS queue_manager FROM {{rows}}
"""
    known = {
        name: ParquetRows(paths=[str(_place(one, store) / name) for one in befores], query=query)
        for name in CARRIED
    }
    return facts.behind(engine.taken(known))


def _place(stretch: Stretch, store: Store) -> Path:
    """Where it is kept what laws need to know of everything up to the end of a stretch.

    That is beside the stretches, and for whoever may only read there, for the time of the job.
    """
    home = stretch.path.parent
    kept = home if os.access(home, os.W_OK) else store.path
    return kept / "carried" / stretch.chain.hex()[:CHAIN_DIGITS] / stretch.name


def _is_whole(place: Path) -> bool:
    """Whether all that was carried is there, as it was written."""
    try:
        files = json.loads((place / WRITTEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (
        isinstance(files, dict)
        and {Path(name).parent.name for name in files} == CARRIED.keys()
        and damage_of(place, files) is None
    )


def _carry(spark: Spark, stretch: Stretch, before: Stretch | None, store: Store) -> None:
    stretch.check()
    befores = [] if before is None else [before]
    facts = _behind(spark, [stretch], befores, store)
    place = _place(stretch, store)
    # What is there is not whole; nobody reads it.
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=place.parent) as unfinished:
        made = Path(unfinished) / stretch.name
        for name, answer in carried(facts).items():
            facts.engine.write(answer, str(made / name))
        write_durably(made / WRITTEN, json.dumps(settled_digests(made)))
        try:
            made.rename(place)
        except OSError:
            # Of two who make the same, one is sooner.
            if not place.exists():
                raise
        sync(place.parent)
