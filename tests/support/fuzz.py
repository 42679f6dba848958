"""Bad records on all five topics beside honest traffic: none may stop a worker without a remedy.

`make fuzz` writes 10,000 (`ROUNDS=1000` fewer, `ARGS='--seed 7'` the same again): records of any
schema with any values, cut and flipped, with any key and headers, by every codec, in Kafka
transactions now and then, with names of headers that are no text; offers of versions that do not
exist; checkpoints that are whole, and of nothing. After each batch the worker must have folded all
of it. Where it waits or refuses to run, the command that its log names is run as it stands, and
must help. At the end the lanes must hold the fold of the ledger, and a worker without checkpoints
must come to the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shlex
import time
from collections.abc import Callable

from confluent_kafka import Producer

from ledgermq.cli.main import main
from ledgermq.processor.checkpoints.digests import chunk_digest, state_digest
from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import VersionOffered
from ledgermq.wire.framing.codec import decode_operation, encode_record, kinds_in
from ledgermq.wire.topics.identity import log_identity
from ledgermq.wire.topics.log_topics import lane_partition
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.foreign_batches import producers, write_unnamed_header
from support.brokers.raw_client import RawSession
from support.brokers.traffic import Traffic
from support.brokers.worker_process import Place, WorkerProcess
from support.checks.bad_records import BadRecords
from support.checks.history import fold_log, recorded_outcomes
from support.frame import arguments_with_seed, place_of_a_run, say

SETTLE_SECONDS = 90.0
ANSWER_SECONDS = 3.0
CHECKPOINT_SECONDS = 1
FOREIGN = ("fuzz", b"1")
# What bad operations of a session must not do: it would be legal, and end the honest traffic.
LEFT_OUT = {"AlterQueueManager", "EndSession", "RollbackTransaction", "Upgrade", "Open"}
# What others derive from.
LEFT_OUT |= {"HandlingOperation", "SessionOperation"}
# A worker that says this met something that it should have been able to refuse.
FAULTS = ("a question has no answer", "the fold failed", "the worker cannot go on")


class Fuzz:
    """Bad records on one place; it has no worker yet."""

    def __init__(
        self, place: Place, seed: int = 1, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.place = place
        self.bad = BadRecords(seed)
        self.random = self.bad.random
        self.written = 0
        self.remedies: list[str] = []
        self._say = say
        self._read_of_log = 0
        self._transactions = 0
        more = {"message.max.bytes": 10_000_000}
        self._producers = producers(place.bootstrap, **more)
        self._worker = self._start(ready=True)
        self._asker = place.client(1)
        self._traffic = Traffic(place.client(0), place.client(1), seed)
        self._session: RawSession = place.client(0).open("CLIENT")

    def _start(self, *, ready: bool = False) -> WorkerProcess:
        self._read_of_log = 0
        self._helped = False
        return self.place.worker("fuzzed", ready=ready, CHECKPOINT_SECONDS=CHECKPOINT_SECONDS)

    # Writing ------------------------------------------------------------------------------------

    def batch(self, count: int) -> None:
        """Writes bad records between good ones; then all of it must be folded."""
        started = time.monotonic()
        for number in range(count):
            self._write_one()
            if number % 10 == 0:
                self._traffic.step()
        for topic in self.random.sample(self._topics(), 2):
            self._in_transaction(topic)
        for topic in self._topics():
            self._unnamed_header(topic)
        self._flush()
        self._settle()
        if self.random.random() < 0.5:
            self._worker.kill()
            self._whole_checkpoint()
            self._worker = self._start()
            self._settle()
        self._round_trip()
        self._say(
            f"{self.written:,} bad records, {len(self.remedies)} remedies, "
            f"{time.monotonic() - started:.1f} s"
        )

    def _topics(self) -> list[str]:
        topics = self.place.topics
        return [
            *(topics.registry, topics.operations, topics.outcomes),
            *(topics.questions, topics.checkpoints),
        ]

    def _write_one(self) -> None:
        topics, one = self.place.topics, self.random
        topic = one.choice(self._topics())
        self.written += 1
        if topic == topics.operations and one.random() < 0.5:
            self._in_turn()
            return
        kind = topic.rpartition(".")[2].rstrip("s")
        key = self.bad.key()
        value = self.bad.value(f"ledgermq.{kind}.")
        partition = one.randrange(self.place.claim.lanes) if topic == topics.outcomes else 0
        self._produce(topic, partition, key, value)

    def _produce(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        value, framing = self.bad.in_confluent(value)
        headers = [*self.bad.headers(), *framing, FOREIGN]
        producer = self.random.choice(self._producers)
        producer.produce(topic, key=key, value=value, partition=partition, headers=headers)
        producer.poll(0)

    def _flush(self) -> None:
        left = sum(one.flush(60) for one in self._producers)
        assert left == 0, "the broker did not take everything"

    def _unnamed_header(self, topic: str) -> None:
        """Any record of the topic, or none, with a header whose name is no UTF-8."""
        kind = topic.rpartition(".")[2].rstrip("s")
        value, framing = self.bad.in_confluent(self.bad.value(f"ledgermq.{kind}."))
        headers = [*self.bad.headers(), *framing, FOREIGN]
        write_unnamed_header(self.place.bootstrap, topic, value, self.bad.key(), headers)
        self.written += 1

    def _in_turn(self) -> None:
        """An operation that is its session's next one, with any values in its fields."""
        kinds = [
            *kinds_in(op, op.SessionOperation),
            *kinds_in(administration, op.SessionOperation),
        ]
        kind = self.random.choice([one for one in kinds if one.__name__ not in LEFT_OUT])
        session = self._session
        if kind is op.Close:
            self._session = session.client.open("CLIENT")
        session.answered = session.sequence
        value = self.bad.record(f"ledgermq.operation.{kind.__name__}")
        operation = decode_operation(value)
        if isinstance(operation, op.Unreadable):
            session.client.write_raw(value)
            return
        fields = {name: getattr(operation, name) for name in kind.__dataclass_fields__}
        for name in ("session", "session_sequence", "answered_through", "handed_through"):
            fields.pop(name)
        session.write(kind, **fields)

    def _in_transaction(self, topic: str) -> None:
        """Records in a Kafka transaction, committed or aborted: its end leaves a hole."""
        self._transactions += 1
        name = f"{self.place.topics.prefix}-{self._transactions}"
        settings = {"bootstrap.servers": self.place.bootstrap, "transactional.id": name}
        producer = Producer(settings)
        producer.init_transactions(20)
        producer.begin_transaction()
        landed: list[int] = []
        producer.produce(
            topic,
            key=self.bad.key(),
            value=b"rubbish",
            partition=0,
            headers=[FOREIGN],
            on_delivery=lambda _, record: landed.append(record.offset()),
        )
        producer.flush(20)
        if self.random.random() < 0.5:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        # The broker marks the end a moment later.
        limit = time.monotonic() + 20
        with PartitionReader(self.place.bootstrap, 20) as reader:
            while reader.ends(topic, 0)[1] < landed[0] + 2:
                assert time.monotonic() < limit, f"no marker came on {topic}"
                time.sleep(0.01)

    def unknown_version(self) -> None:
        """Offers a version that does not exist and makes it the active one: no worker goes on."""
        client = self.place.client(1)
        session = client.open()
        client.write(VersionOffered(worker="fuzz", version=self.random.randint(2, 2**31 - 1)))
        session.write(op.Upgrade, version=2)
        client.flush()
        self._settle()
        assert any("log skip" in one for one in self.remedies), "the version stopped nobody"

    def _whole_checkpoint(self) -> None:
        """A checkpoint of this log whose chunks are all there, and are no state."""
        place, one = self.place, self.random
        with PartitionReader(place.bootstrap, 20) as reader:
            position = one.randrange(reader.ends(place.topics.operations, 0)[1])
            record = reader.record_at(place.topics.operations, 0, position)
        if record is None:
            return
        names = ["ledgermq.checkpoint.Root", "ledgermq.checkpoint.MessageBlock"]
        chunks = [self.bad.record(name) for name in names[: one.randint(1, 2)]]
        digests = [chunk_digest(chunk) for chunk in chunks]
        identity = log_identity(place.bootstrap, place.topics.operations, 20)
        manifest = {
            "queue_manager": "QM1",
            "position": position,
            "append_time_ms": record.timestamp()[1] if one.random() < 0.7 else 1,
            "version": 1,
            "cluster_id": identity.cluster_id,
            "topic_id": identity.topic_id,
            "chain": one.randbytes(32),
            "record_digest": hashlib.sha256(record.value() or b"").digest(),
            "lane_ends": [0],
            "chunks": [
                {"kind": kind, "digest": digest, "queue": "", "block": -1}
                for kind, digest in zip(("root", "block"), digests, strict=False)
            ],
            "digest": state_digest(digests),
            "worker": "fuzz",
        }
        for digest, chunk in zip(digests, chunks, strict=True):
            self._produce(place.topics.checkpoints, 0, f"QM1/chunk/{digest}".encode(), chunk)
        value = encode_record("ledgermq.checkpoint.Manifest", manifest)
        self._produce(place.topics.checkpoints, 0, f"QM1/manifest/{position}".encode(), value)
        self._flush()

    # Looking ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Waits until all that was written is folded; helps as the worker's log says."""
        limit = time.monotonic() + SETTLE_SECONDS
        while not self._answers():
            assert time.monotonic() < limit, f"it does not go on:\n{self._worker.log[-4000:]}"
            self._help()
        for fault in FAULTS:
            assert fault not in self._worker.log, self._worker.log[-8000:]

    def _answers(self) -> bool:
        """Whether the worker folds an entry that is written now, and says so."""
        landed = self._asker.write(op.Tick(worker="fuzz"))
        self._asker.flush()
        wait_ms = int(ANSWER_SECONDS * 1000)
        number = self._asker.ask_only("QUEUE_MANAGER", not_before=landed[0], wait_ms=wait_ms)
        limit = time.monotonic() + ANSWER_SECONDS
        while number not in self._asker.answers and time.monotonic() < limit:
            self._asker.read(0.05)
            if self._worker.code is not None or "`ledgermq " in self._unread():
                return False
        answer = self._asker.answers.get(number)
        return answer is not None and not answer["reason"]

    def _unread(self) -> str:
        return self._worker.log[self._read_of_log :]

    def _help(self) -> None:
        """Runs the command that the worker's log names; starts it again if it ended."""
        said = self._unread()
        commands = re.findall(r"`(ledgermq (?:log skip|checkpoint discard)[^`]*)`", said)
        self._read_of_log += len(said)
        if any("checkpoint discard" in one for one in commands):
            # A worker says so before it ends, and until then it is refused.
            self._worker.wait()
        code = self._worker.code
        if code is not None:
            assert code in (1, 4), f"ended with {code}:\n{said[-4000:]}"
            self._helped = self._helped or bool(commands) or "must start again" in said
            assert self._helped, f"ended with {code}, and no remedy:\n{said[-4000:]}"
        for command in dict.fromkeys(commands):
            self._run(command)
            self._helped = True
        if code is not None:
            self._worker = self._start()

    def _run(self, command: str) -> None:
        arguments = [*shlex.split(command)[1:], "--bootstrap", self.place.bootstrap]
        if "--topic-prefix" not in arguments:
            arguments += ["--topic-prefix", self.place.topics.prefix]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = main([*arguments, "--timeout", "5"])
        assert code == 0, f"{command} did not help: {output.getvalue()}"
        self.remedies.append(command)

    def _round_trip(self) -> None:
        """A real client sends and receives, with rubbish on its lane under its own name."""
        with self.place.connect() as connection, connection.session(transacted=True) as session:
            name = connection._running.settings.identity.hex().encode()
            claim = self.place.claim
            for lane in range(claim.lanes):
                partition = lane_partition(claim.partition, claim.lanes, lane)
                for _ in range(3):
                    value = self.bad.broken(self.bad.record("ledgermq.question.Answer"))
                    self._produce(self.place.topics.outcomes, partition, name, value)
            self._flush()
            body = f"batch {self.written}"
            session.producer("queue:real").send(body)
            session.commit()
            message = session.consumer("queue:real").receive(timeout=20)
            assert message is not None
            assert message.body == body
            session.commit()

    def check(self) -> None:
        """The lanes hold the fold of the ledger, and without checkpoints it comes to the same."""
        self._traffic.settle()
        assert self._worker.stop() == 0
        self._run("ledgermq checkpoint discard --queue-manager QM1 --yes")
        self._worker = self._start()
        self._settle()
        assert "(from the beginning)" in self._worker.log
        fold, recorded = fold_log(self.place), recorded_outcomes(self.place, foreign=FOREIGN)
        wrong = [
            (one, outcome)
            for one, outcome in fold.outcomes.items()
            if recorded.outcomes.get(one) != outcome
            and getattr(outcome, "reason", "") != "position-skipped"
        ]
        assert not wrong, f"{len(wrong)} outcomes are not on the lanes, the first: {wrong[:3]}"
        self._say(f"{len(fold.outcomes):,} outcomes are on the lanes as the fold has them")


def _main() -> None:
    parser = arguments_with_seed(__doc__)
    parser.add_argument("--rounds", type=int, default=10_000, help="bad records")
    parser.add_argument("--batch", type=int, default=250)
    given = parser.parse_args()
    say(f"seed {given.seed}, {given.rounds:,} bad records")
    with place_of_a_run() as place:
        fuzz = Fuzz(place, given.seed, say)
        while fuzz.written < given.rounds:
            fuzz.batch(min(given.batch, given.rounds - fuzz.written))
        fuzz.unknown_version()
        fuzz.check()
        say(f"done: {len(fuzz.remedies)} remedies were asked for, and each helped")


if __name__ == "__main__":
    _main()
