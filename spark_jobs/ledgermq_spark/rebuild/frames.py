"""The frames that laws and tables are asked of (`laws.facts`), as they stand on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledgermq_spark.log.rows import OPERATION_COLUMNS
from ledgermq_spark.log.store import ParquetRows
from ledgermq_spark.rebuild.fold import FOLD_COLUMNS

# Which part of the rows of a fold each frame is: of rows at one position each, and of the end.
POSITIONED: Final = {"outcomes": "outcome", "moves": "move", "clock": "clock"}
OF_THE_END: Final = {"standing": "standing", "segments": "segment"}
HIGHEST: Final = 2**62
# Of so few rows of a fold all that is made of them fits the memory of one machine.
ROWS_IN_MEMORY_MAX: Final = 150_000


def operation_frame(
    paths: Sequence[str], queue_manager: str, position: int = HIGHEST
) -> ParquetRows:
    """The operations up to a position. `queue_manager` is an expression, of `file` if need be."""
    return ParquetRows(
        paths=paths,
        columns=OPERATION_COLUMNS,
        query=f"""
SELECT * EXCEPT (file), {queue_manager} AS queue_manager FROM {{rows}} WHERE position <= {position}
""",
    )


def told_frames(
    paths: Sequence[str],
    queue_manager: str,
    position: int = HIGHEST,
    *,
    ends: Sequence[str],
    is_end: bool = True,
) -> dict[str, ParquetRows]:
    """What folds told up to a position, and, if that `is_end`, what those in `ends` told of it."""
    at = f"position <= {position}"
    told = {
        name: told_frame(paths, part, queue_manager, f"{part}.{at}")
        for name, part in POSITIONED.items()
    }
    return told | {
        name: told_frame(ends, part, queue_manager, str(is_end).upper())
        for name, part in OF_THE_END.items()
    }


def links_frame(paths: Sequence[str]) -> ParquetRows:
    """The digest chain: `position` of the first of some links, and these, 32 bytes each."""
    return ParquetRows(
        paths=paths,
        columns=[one for one in FOLD_COLUMNS if one[0] in ("part", "block", "payload")],
        query="SELECT block AS position, payload FROM {rows} WHERE part = 'links'",
    )


def told_frame(
    paths: Sequence[str], part: str, queue_manager: str, condition: str = "TRUE"
) -> ParquetRows:
    """One of `fold.TOLD`, if the fold was asked to tell it."""
    return ParquetRows(
        paths=paths,
        columns=[one for one in FOLD_COLUMNS if one[0] in ("part", part)],
        query=f"""
SELECT {part}.*, {queue_manager} AS queue_manager FROM {{rows}}
WHERE part = '{part}' AND {condition}
""",
    )
