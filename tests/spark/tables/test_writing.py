"""Writing tables, without Spark: what is there stays until all is written, of one archive."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ledgermq_spark.archive.stretch import Stretch
from ledgermq_spark.archive.written_tables import _Tables
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import (
    UNFINISHED,
    TablesOtherwiseError,
    check_whole,
    write_tables,
)


def stretch(last: int, digest: str) -> Stretch:
    """A stretch up to a position, of which no file is looked at."""
    return Stretch(
        path=Path("nowhere"),
        queue_manager="QM1",
        first=0,
        last=last,
        newest_ms=0,
        begins_with=None,
        digest=digest,
        chain=bytes(32),
        skipped=(),
        fold_seconds=0.0,
        files={},
        follows=None,
        seal="",
    )


@pytest.fixture
def tables(tmp_path):
    """Opens the tables in a directory, as another run does."""
    return lambda: _Tables(None, tmp_path, "QM1", "parquet", tmp_path)


@pytest.fixture
def written(tables, tmp_path):
    """All tables, written up to the end of a stretch."""
    found = tables()
    for name in found.through:
        (tmp_path / name / "queue_manager=QM1").mkdir()
        found._note(name, stretch(9, "d9"))
    return tmp_path


def test_tables_go_on_with_the_archive_that_they_were_written_from(tables, written):
    """Whatever it has more; another one is told, by its state or by where its stretches end."""
    tables().check_written_from(Path("same"), [stretch(4, "d4"), stretch(9, "d9")])
    for other in ([stretch(9, "other")], [stretch(12, "d12")], [stretch(4, "d4")]):
        with pytest.raises(TablesOtherwiseError, match="position 9 of another archive than other"):
            tables().check_written_from(Path("other"), other)


def test_notes_without_a_digest_are_held_against_the_ends_of_stretches(tables, written):
    """Those of earlier releases do not have it."""
    for note in written.glob("*/_written-parquet/QM1.json"):
        note.write_text('{"through": 9}')
    tables().check_written_from(Path("same"), [stretch(9, "d9")])
    with pytest.raises(TablesOtherwiseError, match="of another archive"):
        tables().check_written_from(Path("other"), [stretch(12, "d12")])


@pytest.mark.parametrize("text", ["", "[]", '{"through": null}', "[" * 100_000], ids=len)
def test_a_note_that_was_changed_is_told_with_what_to_do(tables, written, text):
    """To go on from nowhere would write rows twice."""
    note = written / "messages" / "_written-parquet" / "QM1.json"
    note.write_text(text)
    with pytest.raises(TablesOtherwiseError, match=r"QM1\.json does not say any more"):
        tables()


def test_tables_stay_as_they_are_until_all_of_them_are_written_anew(tmp_path):
    """A disk that is full meanwhile takes none of them away, and nothing is left to fill it."""
    room = SimpleNamespace(tables=len(TABLES), text="before")

    def write(_, path):
        if not room.tables:
            raise OSError("No space left on device")
        room.tables -= 1
        Path(path).mkdir(parents=True)
        (Path(path) / "rows.parquet").write_text(room.text)

    facts = SimpleNamespace(query=lambda text: text, engine=SimpleNamespace(write=write))

    def there():
        return {one.read_text() for one in tmp_path.glob("*/rows.parquet")}, len(
            list(tmp_path.iterdir())
        )

    # What a run that was killed left is no hindrance.
    (tmp_path / UNFINISHED / "messages").mkdir(parents=True)
    write_tables(facts, tmp_path)
    assert there() == ({"before"}, len(TABLES) + 1)
    room.tables, room.text = 3, "after"
    with pytest.raises(OSError, match="No space left"):
        write_tables(facts, tmp_path)
    assert there() == ({"before"}, len(TABLES) + 1)
    room.tables = len(TABLES)
    write_tables(facts, tmp_path)
    assert there() == ({"after"}, len(TABLES) + 1)


@pytest.mark.parametrize("foreign", ["queue_manager=QM1/backup=1", "notes.txt"])
def test_what_is_no_table_is_not_taken_away_for_one(tmp_path, foreign):
    """As the messages of a journal's backups are, in a directory that has the name of a table."""
    (tmp_path / "messages" / foreign).mkdir(parents=True)
    with pytest.raises(TablesOtherwiseError, match=r"messages/.* belongs to no table"):
        check_whole(tmp_path)
    assert (tmp_path / "messages" / foreign).exists()


def test_a_file_in_the_place_of_a_table_stays(tmp_path):
    """It may be anybody's."""
    (tmp_path / "sessions").write_text("mine")
    with pytest.raises(TablesOtherwiseError, match="sessions belongs to no table"):
        check_whole(tmp_path)


def test_what_spark_leaves_beside_a_table_goes_with_it(tmp_path):
    """Marks of other writers are part of a table."""
    (tmp_path / "messages").mkdir()
    for name in ("part-0.parquet", "_SUCCESS", ".part-0.parquet.crc"):
        (tmp_path / "messages" / name).touch()
    check_whole(tmp_path)
