"""`ledgermq replay`: puts a stretch of history again, each message once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.commands.journal import COLUMNS as JOURNAL_COLUMNS
from ledgermq.cli.options.bodies import body_line
from ledgermq.cli.options.consent import confirm, yes_option
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.replay_choice import (
    CLIENT_ID,
    ReplayChoice,
    replay_choice,
    replay_options,
)
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.cli.printing.left_out import LeftOut
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.client.admin.copies import journal_message, why_no_copy
from ledgermq.client.admin.replaying import Pace, Replaying, replaying
from ledgermq.errors import InvalidClientIDError, LedgerMQError
from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq.wire.content.replayed import marks_of, put_named

if TYPE_CHECKING:
    from ledgermq_spark.journal.stretch import Stretch


FIRST_MAX: Final = 10
# Of a run that was killed, the session ends after twice that; until then nobody else may go on.
SUSPECT_SECONDS: Final = 5.0
TAKEN_SECONDS_MAX: Final = 20.0
COLUMNS: Final = [one for one in JOURNAL_COLUMNS if one.key not in ("expires_at", "where")]


class ReplayRunningError(LedgerMQError):
    """The same replay is being made by somebody else."""

    code = "replay-running"
    retryable = True


@dataclass(slots=True, kw_only=True)
class Counted:
    """What a stretch has of what is meant: all, replayed already, and what cannot be put again.

    `no_copies` has where all of the last were put that the log still has.
    """

    left_out: LeftOut
    messages: int = 0
    replayed: int = 0
    no_copies: set[tuple[int, int]] = field(default_factory=set)
    first: list[dict[str, Any]] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        return self.messages - self.replayed - self.left_out.count

    @property
    def before(self) -> str:
        """What is said of those that were replayed already."""
        were = "was" if self.replayed == 1 else "were"
        return f", {self.replayed:,} {were} before" if self.replayed else ""


@click.command(cls=OnceCommand)
@replay_options
@click.option("--dry-run", is_flag=True, help="Only count the messages and list the first ones.")
@yes_option
@target_options
def replay(target: Target, output: Output, dry_run: bool, yes: bool, **options: Any) -> int:
    """Put again, in their order, the messages that were put between two moments, each once.

    A copy is a new message; its properties LedgerMQ_ReplayedMessageId, LedgerMQ_ReplayedFrom and
    LedgerMQ_Replay name its original and this replay. If the command was killed or stopped, run the
    same again: it goes on where it was.
    """
    chosen = replay_choice(target, options)
    if dry_run:
        with spark_job(target, output, "replay") as job:
            stretch = _stretch(chosen, job)
            counted = _count(chosen, stretch, target.queue_manager)
        lacking = _lacking(chosen, stretch)
        _tell(target, output, chosen, counted, dry_run=True, lacking=lacking)
        return REFUSED if lacking and not stretch.creates and counted.remaining else OK
    with (
        _alone(target, output, chosen.name) as begun,
        spark_job(target, output, "replay") as job,
    ):
        stretch = _stretch(chosen, job)
        assert stretch.through >= begun.opened_at, "the log was read before the Open"
        counted = _count(chosen, stretch, target.queue_manager)
        done = 0
        if counted.remaining:
            if not yes:
                what = count_of(counted.remaining, "message")
                confirm(f"this would put {what} to {chosen.where} again{counted.before}")
            done = _put(begun, chosen, stretch, counted, job["progress"])
    _tell(target, output, chosen, counted, done=done)
    return OK


def _stretch(chosen: ReplayChoice, job: dict[str, Any]) -> Stretch:
    from ledgermq_spark.journal.stretch import stretch_of

    return stretch_of(
        first=chosen.first,
        last=chosen.last,
        replay=chosen.name,
        sources=chosen.sources,
        archive=chosen.archive,
        **job,
    )


def _lacking(chosen: ReplayChoice, stretch: Stretch) -> str:
    """What there is to say of a destination of the copies that is not there."""
    if chosen.into is None or chosen.into in stretch.destinations:
        return ""
    if stretch.creates:
        return f"{chosen.into} is not there yet: the first copy creates it"
    return (
        f"{chosen.into} is not there and automatic creation is off, so nothing would be put: "
        "create it, or give another --into"
    )


def _meant(chosen: ReplayChoice, stretch: Stretch) -> Iterator[tuple[JournaledMessage, bool]]:
    meant = (pair for pair in stretch.messages() if chosen.choice.takes(pair[0]))
    return islice(meant, chosen.limit or None)


def _count(chosen: ReplayChoice, stretch: Stretch, queue_manager: str) -> Counted:
    """Counts what is meant; what is gone from the log is counted whatever a selector says."""
    gone, places = stretch.gone()
    cut_off = [f"{put_named(queue_manager, *place)}: it was cut off the log" for place in places]
    left_out = LeftOut(queue_manager=queue_manager, count=gone, named=cut_off)
    counted = Counted(messages=gone, left_out=left_out)
    for one, is_replayed in _meant(chosen, stretch):
        counted.messages += 1
        if is_replayed:
            counted.replayed += 1
        elif why := why_no_copy(
            one, marks_of(queue_manager, one, chosen.name), to=chosen.into, groups=chosen.groups
        ):
            left_out.add(one, why)
            counted.no_copies.add((one.put_position, one.put_index))
        elif len(counted.first) < FIRST_MAX:
            names = ("position", "destination", "sequence", "message_id", "enqueued_at")
            body = body_line(journal_message(one).unloaded_body)
            counted.first.append({name: getattr(one, name) for name in names} | {"body": body})
    return counted


def _put(
    begun: Replaying, chosen: ReplayChoice, stretch: Stretch, counted: Counted, tell: Any
) -> int:
    remaining = counted.remaining
    left = (
        one
        for one, is_replayed in _meant(chosen, stretch)
        if not is_replayed and (one.put_position, one.put_index) not in counted.no_copies
    )
    tell(f"0 of {remaining:,} messages are put", 0, remaining)
    return begun.put(
        left,
        to=chosen.into,
        groups=chosen.groups,
        pace=None if chosen.factor is None else Pace(chosen.factor),
        tell=lambda done: tell(f"{done:,} of {remaining:,} messages are put", done, remaining),
    )


@contextlib.contextmanager
def _alone(target: Target, output: Output, name: str) -> Iterator[Replaying]:
    """Begins a replay that nobody else makes; one that was killed is waited for.

    Raises:
        ReplayRunningError: Somebody makes the same one.
    """
    deadline, is_told = time.monotonic() + TAKEN_SECONDS_MAX, False
    with contextlib.ExitStack() as stack:
        while True:
            try:
                connection = stack.enter_context(
                    target.connect(
                        client_id=CLIENT_ID + name, suspect_timeout_seconds=SUSPECT_SECONDS
                    )
                )
                break
            except InvalidClientIDError as error:
                if time.monotonic() > deadline:
                    raise ReplayRunningError(
                        f"replay {name} is being run already, and two would put messages twice: "
                        "wait for the other to end, or stop it and run this again"
                    ) from error
            if not is_told:
                output.remark(f"another run of replay {name} has not ended: waiting for it")
                is_told = True
            time.sleep(1)
        yield stack.enter_context(replaying(connection, name))


def _tell(
    target: Target,
    output: Output,
    chosen: ReplayChoice,
    counted: Counted,
    *,
    done: int = 0,
    dry_run: bool = False,
    lacking: str = "",
) -> None:
    stretch = f"{target.named(chosen.first)} to {target.named(chosen.last)}"
    where = f"{chosen.where}{counted.before}"
    text = f"{count_of(done, 'message')} of {stretch} replayed to {where}"
    if not counted.messages:
        text = f"no message of {stretch} is meant"
    elif counted.replayed == counted.messages:
        every = "the one message" if counted.messages == 1 else f"all {counted.messages:,} messages"
        were = "was" if counted.messages == 1 else "were"
        text = f"{every} of {stretch} {were} replayed already"
    elif dry_run:
        what = count_of(counted.remaining, "message")
        text = f"{what} of {stretch} would be replayed to {where}"
    if lacking:
        output.remark(lacking)
    text += counted.left_out.say(output)
    document = {
        "queue_manager": target.queue_manager,
        "name": chosen.name,
        "from": chosen.first,
        "to": chosen.last,
        "into": chosen.into,
        "messages": counted.messages,
        "replayed": done,
        "replayed_before": counted.replayed,
        **counted.left_out.document(),
        "dry_run": dry_run,
    }
    if dry_run:
        document |= {"first": counted.first, "into_exists": not lacking}
    output.done(f"{text} (replay {chosen.name})", document)
    if dry_run and counted.first and not output.as_json:
        output.table(COLUMNS, counted.first)
