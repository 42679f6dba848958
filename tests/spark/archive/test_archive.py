"""Tests of archives of a log: made in stretches, proven again, asked without a broker."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledgermq_spark import history
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.archive.folding import rebuild_archived
from ledgermq_spark.archive.log_archive import ArchiveBusyError, ArchiveMissingError, LogArchive
from ledgermq_spark.archive.proving import prove_stretches
from ledgermq_spark.archive.stretch import ArchiveBrokenError
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.archive.written_tables import write_new
from ledgermq_spark.jobs.run import rebuild_at, run_proof, run_tables
from ledgermq_spark.laws.engines.choice import dataframe_engine, quickest_engine
from ledgermq_spark.log.positions import PositionOutOfRangeError, parse_moment
from ledgermq_spark.tables.all_tables import TABLES
from support.audits.archives import PER_STRETCH, TOLD_LATER
from support.brokers.broker_logs import write
from support.brokers.log_writer import Script
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


def test_stretches_follow_each_other_to_the_end_of_the_log(log, path):
    """Each ends with the state that the fold has there, and begins where the one before ended."""
    stretches = LogArchive(path, "QM1").stretches()
    end = len(log.entries) - 1
    assert stretches[-1].last == end
    bounds = [(one.first, one.last) for one in stretches]
    assert (end - TOLD_LATER + 1, end) in bounds
    assert max(last - first for first, last in bounds) == PER_STRETCH - 1
    for one in stretches:
        assert one.state().root_record()["position"] == one.last


def test_an_archive_is_proven_stretch_by_stretch(spark, log, path):
    """All records, and all that was told of them."""
    found = prove_stretches(spark, LogArchive(path, "QM1").stretches())
    assert [one.problem for one in found] == [None] * len(found)
    assert sum(one.records for one in found) == len(log.entries)


def test_tables_of_an_archive_are_those_of_the_log(spark, log, path):
    """At a position in the middle of a stretch, without the broker."""
    at = PER_STRETCH + 9
    archived = archived_facts(path, "QM1", at, spark=spark)
    folded = run_tables(log.bootstrap, "QM1", at, spark=spark, tunes=False, **log.where)
    for name, text in TABLES.items():
        found, expected = (Counter(map(str, one.rows(text))) for one in (archived, folded))
        assert found == expected, name


def test_tables_of_an_archive_are_frames_of_ones_own_session(spark, path, tmp_path):
    """At a position, as Spark's own rows; what is chosen of them is told as lives."""
    at = PER_STRETCH + 9
    past = history.read_archive(spark, path, "QM1", at, directory=tmp_path)
    archived = archived_facts(path, "QM1", at, spark=spark)
    for name, frame in (("messages", past.messages()), ("message_events", past.events())):
        expected = Counter(str(row) for row in archived.rows(TABLES[name]))
        assert Counter(str(row.asDict(recursive=True)) for row in frame.collect()) == expected
    (life,) = past.lives("put_position > 0", most=1)
    assert life.queue_manager == "QM1"


def test_directories_of_ones_own_session_may_be_texts(spark, log, path, tmp_path):
    """As programs mostly have them."""
    past = history.read_archive(spark, str(path), "QM1", directory=str(tmp_path))
    assert past.operations().count() == len(log.entries)


def test_an_archive_whose_name_is_a_pattern_is_not_mixed_with_those_that_fit_it(
    spark, log, path, tmp_path
):
    """Whoever asked it was told each message twice, or, where a pattern does not fit itself as with
    a set of characters or alternatives, that there is no such path.
    """
    name = "kept? [1]{2,3}"
    for one in (name, name.replace("?", "1")):
        shutil.copytree(path, tmp_path / one)
    archive = tmp_path / name
    assert update_archive(log.bootstrap, "QM1", archive, spark=spark, **log.where) == []
    for choice in (quickest_engine, dataframe_engine):
        facts = archived_facts(archive, "QM1", spark=spark, choice=choice)
        (counted,) = facts.rows("SELECT count(*) AS operations FROM {operations}")
        assert counted["operations"] == len(log.entries)
    for at in (PER_STRETCH - 1, PER_STRETCH + 30):
        assert rebuild_archived(archive, "QM1", at, spark=spark).position == at
    written = write_new(archive, "QM1", tmp_path / f"tables of {name}", spark=spark)
    assert written.stretches == len(LogArchive(path, "QM1").stretches())


def test_a_rebuild_from_an_archive_is_the_one_from_the_log(spark, log, path):
    """At the end of a stretch, where nothing is folded, and in the middle of one."""
    for at in (PER_STRETCH - 1, PER_STRETCH + 30):
        archived = rebuild_archived(path, "QM1", at, spark=spark)
        folded = rebuild_at(log.bootstrap, "QM1", at, spark=spark, **log.where)
        assert (archived.position, archived.digest) == (at, folded.digest)
        assert archived.chain == folded.chain
        assert archived.statuses == folded.statuses


def test_a_position_is_rebuilt_as_it_is_written(spark, path):
    """As `--at` gives it, inside a stretch."""
    in_between = rebuild_archived(path, "QM1", 7, spark=spark)
    for at in ("7", "QM1@7", parse_moment("QM1@7")):
        assert rebuild_archived(path, "QM1", at, spark=spark).digest == in_between.digest


def test_a_time_means_the_last_record_until_then(spark, log, path):
    """As it does on the log itself."""
    at = len(log.entries) // 2
    moment = datetime.fromtimestamp(log.entries[at].time_us / 1_000_000, UTC)
    facts = archived_facts(path, "QM1", moment, spark=spark)
    found = facts.rows("SELECT max(position) AS last FROM {operations}")[0]["last"]
    expected = max(n for n, one in enumerate(log.entries) if one.time_us <= log.entries[at].time_us)
    assert found == expected


def test_what_is_archived_is_not_archived_again(spark, log, path):
    """Another update finds nothing new, and one at a time is allowed."""
    assert update_archive(log.bootstrap, "QM1", path, spark=spark, **log.where) == []
    with LogArchive(path, "QM1").adding(), pytest.raises(ArchiveBusyError, match="somebody else"):
        update_archive(log.bootstrap, "QM1", path, spark=spark, **log.where)


def test_what_is_not_in_an_archive_is_told(spark, log, path, tmp_path):
    """Positions and times above its end, managers that it does not know."""
    with pytest.raises(PositionOutOfRangeError, match="which has 0 to"):
        archived_facts(path, "QM1", len(log.entries), spark=spark)
    with pytest.raises(PositionOutOfRangeError, match=r"^2999-01-01T00:00:00Z .* to \S+Z; "):
        archived_facts(path, "QM1", datetime(2999, 1, 1, tzinfo=UTC), spark=spark)
    with pytest.raises(
        PositionOutOfRangeError,
        match=r"before the first record of the archive: name position 0, or a later time$",
    ):
        archived_facts(path, "QM1", datetime(1999, 1, 1, tzinfo=UTC), spark=spark)
    with pytest.raises(PositionOutOfRangeError, match="QM2@3 is a position on the log of QM2"):
        archived_facts(path, "QM1", "QM2@3", spark=spark)
    with pytest.raises(ArchiveMissingError, match="nothing of QM2"):
        archived_facts(path, "QM2", spark=spark)


def test_an_archive_of_another_log_is_not_added_to(spark, broker, path):
    """It is told by its end, or by its last record."""
    script = Script(step_us=0)
    RandomLog(script, topics=True).grow(400)
    plain = [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
    longer = write(broker.bootstrap, plain)
    with pytest.raises(ArchiveBrokenError, match="is not the one that was archived"):
        update_archive(longer.bootstrap, "QM1", path, spark=spark, **longer.where)
    shorter = write(broker.bootstrap, plain[:20])
    with pytest.raises(ArchiveBrokenError, match="another log of that name"):
        update_archive(shorter.bootstrap, "QM1", path, spark=spark, **shorter.where)


LANES = '{"last": 3, "at": "", "digest": "", "lane_ends": {"a": 1}}'


class TestTampering:
    """Who changes an archive with its manifests is found by the proof; damage is told at once."""

    @pytest.fixture
    def copy(self, path, tmp_path):
        """A copy of the archive."""
        shutil.copytree(path, tmp_path / "copy")
        return tmp_path / "copy"

    def problems(self, spark, copy):
        """What is wrong with stretches, by their numbers."""
        found = prove_stretches(spark, LogArchive(copy, "QM1").stretches())
        return {at: one.problem for at, one in enumerate(found) if one.problem}

    def change(self, copy, part, changed, number=0):
        """Changes the Parquet file of a part of a stretch, and the manifest with it."""
        from ledgermq_spark.log.durable_files import file_digest

        stretch = LogArchive(copy, "QM1").stretches()[number]
        (file,) = (stretch.path / part).glob("*.parquet")
        table = pq.read_table(file)
        pq.write_table(changed(table), file)
        manifest = json.loads((stretch.path / "manifest.json").read_text())
        manifest["files"][f"{part}/{file.name}"] = file_digest(file)
        (stretch.path / "manifest.json").write_text(json.dumps(manifest))

    @pytest.mark.parametrize("part", ["records", "operations", "fold"])
    def test_a_flipped_byte(self, spark, copy, part):
        """The file is not as it was written, and no law is asked of what it has."""
        stretch = LogArchive(copy, "QM1").stretches()[0]
        (file,) = (stretch.path / part).glob("*.parquet")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))
        found, findings = run_proof(copy, "QM1", spark=spark)
        assert f"{file} is not as it was written" == found[0].problem
        assert findings == []
        with pytest.raises(ArchiveBrokenError, match="not as it was written; take the stretch"):
            archived_facts(copy, "QM1", spark=spark)

    def test_what_was_carried_into_a_stretch(self, spark, copy):
        """It follows from the stretches: what is not as it was written is worked out again."""

        def prove():
            found, findings = run_proof(copy, "QM1", spark=spark)
            assert (findings, [one.problem for one in found if one.problem]) == ([], [])

        prove()
        first, second, *_ = sorted((LogArchive(copy, "QM1").home / "carried").glob("*/*"))
        (moves,) = (first / "moves").glob("*.parquet")
        (operations,) = (first / "operations").glob("*.parquet")
        written = first / "files.json"
        names = json.loads(written.read_text()).keys()
        for damage in (
            lambda: moves.write_bytes(b"PAR1"),
            lambda: shutil.rmtree(first / "clock"),
            lambda: shutil.copy(next((second / "operations").iterdir()), operations),
            lambda: written.write_text("[]"),
            written.unlink,
        ):
            damage()
            prove()
            assert json.loads(written.read_text()).keys() == names

    @pytest.mark.parametrize("text", ["", "[]", "3", '{"last": 3}', "[" * 100_000, LANES])
    def test_a_note_of_the_last_audit_that_is_none(self, copy, text):
        """Without it the next audit begins at the beginning: so it may be taken away."""
        archive = LogArchive(copy, "QM1")
        assert archive.proven() is None
        (archive.home / "proven.json").write_text(text)
        with pytest.raises(ArchiveBrokenError, match="without it the next audit begins at"):
            archive.proven()

    def test_a_stretch_of_another_queue_manager(self, copy):
        """As where a directory was copied under another name."""
        (copy / "QM1").rename(copy / "QM2")
        with pytest.raises(ArchiveBrokenError, match="of the queue manager QM1, not of QM2"):
            LogArchive(copy, "QM2").stretches()

    @pytest.mark.parametrize("content", [b"", b"PAR1 and no more", None])
    def test_a_state_that_cannot_be_read(self, copy, content):
        """Empty, cut or gone."""
        stretch = LogArchive(copy, "QM1").stretches()[0]
        for file in (stretch.path / "fold").glob("*.parquet"):
            file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(ArchiveBrokenError, match="take the stretch from a copy"):
            stretch.state()

    @pytest.mark.parametrize("part", ["records", "operations", "fold"])
    def test_a_file_that_is_missing_or_does_not_belong_there(self, spark, copy, part, tmp_path):
        """What is left would be read as if it were all there is."""
        first, second, *_ = LogArchive(copy, "QM1").stretches()
        (file,) = list((first.path / part).glob("*.parquet"))[:1]
        file.rename(second.path / part / "more.parquet")
        for broken, problem in ((first, "is missing"), (second, "was not written with the others")):
            with pytest.raises(ArchiveBrokenError, match=problem):
                rebuild_archived(copy, "QM1", broken.last, spark=spark)
            assert problem in self.problems(spark, copy)[broken.first // PER_STRETCH]
        with pytest.raises(ArchiveBrokenError, match="is missing"):
            archived_facts(copy, "QM1", spark=spark)
        with pytest.raises(ArchiveBrokenError, match="is missing"):
            write_new(copy, "QM1", tmp_path / "tables", spark=spark)

    @pytest.mark.parametrize(
        "changes",
        [
            *({"first": "x"}, {"last": None}, {"files": None}, {"chain": "no"}, {"skipped": [1]}),
            *([], None, {"newest_ms": 10**30}),
        ],
    )
    def test_a_manifest_that_says_something_else(self, copy, changes):
        """Cut short, or with values that are none."""
        path = LogArchive(copy, "QM1").stretches()[0].path / "manifest.json"
        text = path.read_text()
        changed = "[" * 100_000 if changes == [] else text[:99]
        path.write_text(json.dumps(json.loads(text) | changes) if changes else changed)
        with pytest.raises(ArchiveBrokenError, match=r"manifest\.json cannot be read: it is"):
            LogArchive(copy, "QM1").stretches()

    def test_a_record_left_out(self, spark, copy):
        """Whoever can write manifests cannot leave out a record: it is a hole."""
        self.change(copy, "records", lambda table: pa.concat_tables([table[:9], table[10:]]))
        assert self.problems(spark, copy).keys() == {0}
        assert "the record of position 9 is not where it was" in self.problems(spark, copy)[0]

    def test_a_record_left_out_of_the_last_stretch(self, spark, copy):
        """No stretch follows that knows its seal: what lies behind it is not told as it is not."""
        last = LogArchive(copy, "QM1").stretches()[-1]
        cut = lambda table: pa.concat_tables([table[:9], table[10:]])  # noqa: E731
        self.change(copy, "records", cut, -1)
        problem = f"the record of position {last.first + 9} is not where it was"
        with pytest.raises(ArchiveBrokenError, match=problem):
            rebuild_archived(copy, "QM1", last.last - 1, spark=spark)

    def test_a_record_without_its_time(self, spark, copy):
        """As no Kafka has one."""

        def changed(table):
            at = table.schema.get_field_index("append_time_ms")
            times = table.column("append_time_ms").to_pylist()
            return table.set_column(at, "append_time_ms", pa.array([None, *times[1:]], pa.int64()))

        self.change(copy, "records", changed, -1)
        (problem,) = self.problems(spark, copy).values()
        assert problem.endswith("has records without a position or time")

    @pytest.mark.parametrize("column", ["key", "headers"])
    def test_what_belongs_to_no_digest_of_the_fold(self, spark, copy, column):
        """Keys and headers: the stretch behind knows the seal, and else whoever noted the last."""
        before = LogArchive(copy, "QM1").sealed()

        def changed(table):
            at = table.schema.get_field_index(column)
            field = table.schema.field(at)
            return table.set_column(at, field, pa.nulls(len(table), field.type))

        self.change(copy, "records", changed, -1)
        assert LogArchive(copy, "QM1").sealed()[-1].seal != before[-1].seal
        self.change(copy, "records", changed)
        assert "its manifest has another seal" in self.problems(spark, copy)[0]
        with pytest.raises(ArchiveBrokenError, match=f"or {before[0].path}.* was; take it from"):
            archived_facts(copy, "QM1", spark=spark)
        found, findings = run_proof(copy, "QM1", spark=spark)
        assert (found[0].problem is None, findings) == (False, [])

    def test_positions_that_were_not_declared_skipped(self, spark, copy):
        """The fold passed over none."""
        path = LogArchive(copy, "QM1").stretches()[-1].path / "manifest.json"
        manifest = json.loads(path.read_text())
        skipped = [[manifest["first"], manifest["first"]]]
        path.write_text(json.dumps(manifest | {"skipped": skipped}))
        (problem,) = self.problems(spark, copy).values()
        assert "other positions declared skipped" in problem

    def test_a_time_that_no_record_has(self, spark, copy):
        """A moment before it is not found among the records."""
        last = LogArchive(copy, "QM1").stretches()[-1]
        path = last.path / "manifest.json"
        manifest = json.loads(path.read_text())
        path.write_text(json.dumps(manifest | {"newest_ms": last.newest_ms + 60_000}))
        moment = datetime.fromtimestamp(last.newest_ms / 1000 + 30, UTC)
        with pytest.raises(ArchiveBrokenError, match="has no record of its newest time"):
            rebuild_archived(copy, "QM1", moment, spark=spark)

    def test_a_record_left_out_at_the_end(self, spark, copy):
        """It ends too early."""
        self.change(copy, "records", lambda table: table[:-1])
        assert (
            "rows of" in self.problems(spark, copy)[0] or "end at" in self.problems(spark, copy)[0]
        )

    def test_a_record_with_another_time(self, spark, copy):
        """The chain is another, whether the fold minds or not."""

        def changed(table):
            times = table.column("append_time_ms").to_pylist()
            times[-1] += 1
            at = table.schema.get_field_index("append_time_ms")
            return table.set_column(at, "append_time_ms", pa.array(times, pa.int64()))

        self.change(copy, "records", changed)
        assert self.problems(spark, copy).keys() == {0}

    def test_a_row_that_the_fold_never_told(self, spark, copy):
        """A row of the fold is left out: the fold of the records tells of it."""

        def changed(table):
            parts = table.column("part").to_pylist()
            at = parts.index("move")
            return pa.concat_tables([table[:at], table[at + 1 :]])

        self.change(copy, "fold", changed)
        assert "rows of move" in self.problems(spark, copy)[0]

    @pytest.mark.parametrize("column", ["client_id", "settings", "headers", "session_key"])
    def test_an_operation_that_no_record_is(self, spark, copy, column):
        """Tables and reports have who did what from there, which no law asks for."""

        def changed(table):
            values = table.column(column).to_pylist()
            at = next(at for at, one in enumerate(values) if one)
            values[at] = values[at][1:]
            index = table.schema.get_field_index(column)
            field = table.schema.field(index)
            return table.set_column(index, field, pa.array(values, field.type))

        self.change(copy, "operations", changed)
        assert (
            "the records are other operations than the archive has"
            in (self.problems(spark, copy)[0])
        )

    @pytest.mark.parametrize("name", ["statuses", "links", "end", "stalls"])
    def test_what_is_told_of_a_state(self, spark, copy, name):
        """A rebuild at the end of a stretch shows it as it is there."""

        def changed(table):
            at = table.column("part").to_pylist().index(name)
            return pa.concat_tables([table[:at], table[at + 1 :]])

        self.change(copy, "fold", changed)
        assert self.problems(spark, copy).keys() == {0}

    def test_the_last_state(self, spark, copy):
        """Nothing is folded from it yet that would show it."""
        last = len(LogArchive(copy, "QM1").stretches()) - 1

        def changed(table):
            at = table.column("part").to_pylist().index("root")
            payloads = table.column("payload").to_pylist()
            payloads[at] += b"x"
            index = table.schema.get_field_index("payload")
            return table.set_column(index, "payload", pa.array(payloads, pa.binary()))

        self.change(copy, "fold", changed, last)
        problem = "the fold gives other root than the archive has"
        assert self.problems(spark, copy) == {last: problem}
        with pytest.raises(ArchiveBrokenError, match="does not add up to its digest; take the"):
            rebuild_archived(copy, "QM1", spark=spark)

    def test_a_last_state_that_is_none(self, spark, copy):
        """Garbage with a digest in the manifest."""
        self.change(copy, "fold", lambda table: table[:0], -1)
        with pytest.raises(ArchiveBrokenError, match=r"cannot be read: .*; take the stretch"):
            rebuild_archived(copy, "QM1", spark=spark)

    def test_the_time_up_to_which_a_stretch_goes(self, spark, copy):
        """By it a moment is looked up."""
        path = LogArchive(copy, "QM1").stretches()[0].path / "manifest.json"
        manifest = json.loads(path.read_text())
        path.write_text(json.dumps(manifest | {"newest_ms": manifest["newest_ms"] + 1}))
        assert "another time of the newest record" in self.problems(spark, copy)[0]

    def test_a_stretch_that_is_missing(self, copy):
        """It is told before anything is folded."""
        import shutil

        shutil.rmtree(LogArchive(copy, "QM1").stretches()[1].path)
        with pytest.raises(ArchiveBrokenError, match="a stretch is missing"):
            LogArchive(copy, "QM1").stretches()
