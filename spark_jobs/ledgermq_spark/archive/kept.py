"""What an archive keeps of a stretch, in its order and so many rows at a time, to hold against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledgermq_spark.archive.stretch import FOLD, OPERATIONS, Stretch
from ledgermq_spark.log.read_log import HOLES
from ledgermq_spark.log.rows import OPERATION_COLUMNS, arrow_schema, arrow_type, spark_schema
from ledgermq_spark.rebuild.fold import TOLD

# Of large blocks of messages so many at a time.
PAYLOADS_AT_ONCE: Final = 1_000
PAYLOAD_COLUMNS: Final = ("part", "queue", "created_position", "block", "number", "payload")


class KeptRows:
    """Rows, one after the other, of arrays that follow each other."""

    def __init__(self, arrays: Iterator[pa.Array]) -> None:
        self._rows = arrays
        self._left: Any = None

    def next_rows(self, count: int) -> Any:
        """The next rows as one array; None if there are not so many."""
        parts = [] if self._left is None else [self._left]
        have = sum(map(len, parts))
        while have < count:
            part = next(self._rows, None)
            if part is None:
                self._left = pa.concat_arrays(parts) if parts else None
                return None
            parts.append(part)
            have += len(part)
        whole = pa.concat_arrays(parts)
        self._left = whole.slice(count)
        return whole.slice(0, count)


def told_rows(stretch: Stretch, name: str) -> Iterator[pa.Array]:
    """The rows of one of `TOLD`, as structs."""
    kind = arrow_type(spark_schema(TOLD[name]))
    for path in _files(stretch, FOLD):
        for batch in pq.ParquetFile(path).iter_batches(columns=["part", name]):
            chosen = batch.filter(pc.equal(batch.column(0), name))
            if len(chosen):
                yield chosen.column(1).cast(kind)


def payload_rows(stretch: Stretch) -> Iterator[dict[str, Any]]:
    """The other rows of the fold, of which each has a payload."""
    for path in _files(stretch, FOLD):
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(PAYLOADS_AT_ONCE, columns=list(PAYLOAD_COLUMNS)):
            yield from batch.filter(pc.is_valid(batch.column("payload"))).to_pylist()


def operation_rows(stretch: Stretch, *, of_holes: bool = False) -> Iterator[pa.Array]:
    """The operations in the order of the log as structs, or those in place of holes.

    Columns that an older program did not write are null, as they are for whoever reads them.
    """
    files = [path for path in _files(stretch, OPERATIONS) if (path.name == HOLES) is of_holes]
    schema = arrow_schema(OPERATION_COLUMNS)
    for path in sorted(files, key=_first_position):
        for batch in pq.ParquetFile(path).iter_batches():
            there = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns = [
                there[one.name].cast(one.type)
                if one.name in there
                else pa.nulls(len(batch), one.type)
                for one in schema
            ]
            yield pa.StructArray.from_arrays(columns, names=schema.names)


def _first_position(path: Path) -> int:
    """Of a file with operations; each has those that one task decoded, in their order."""
    batch = next(pq.ParquetFile(path).iter_batches(1, columns=["position"]), None)
    first = None if batch is None else batch.column(0)[0].as_py()
    return -1 if first is None else int(first)


def _files(stretch: Stretch, part: str) -> list[Path]:
    return sorted((stretch.path / part).glob("*.parquet"))
