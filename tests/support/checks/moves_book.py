"""A plain book of where messages are, kept from the moves that the fold reports and nothing else.

What the moves come to is compared with the state after every entry: where each message is, how many
are in each state and how much they take, how many are gone and why. Moves must be legal, and each
must begin where the one before it ended.
"""

from __future__ import annotations

from collections import Counter

from ledgermq.core.moves import state_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import CAUSES, GONE, MOVES, NAMES, NEW, UNCOMMITTED
from ledgermq.core.state.records import Topic
from support.checks.single_moves import Move

# Where a queue, subscription or topic was made, and whether it is a topic.
Store = tuple[int, bool]
Known = dict[tuple[Store, int], str]


class MovesBook:
    """Numbered messages by store and number, open puts by store and put; each with its state."""

    def __init__(self) -> None:
        self.numbered: Known = {}
        self.open_puts: Counter[tuple[Store, int, int]] = Counter()
        self.gone: Counter[tuple[Store, str]] = Counter()
        self.come: Counter[Store] = Counter()
        self.next_step = (-1, 0)
        self.seen: Counter[tuple[str, str, str]] = Counter()

    def take(self, move: Move) -> None:
        """Writes a move into the book."""
        position, step = self.next_step
        assert move.step == (step if move.position == position else 0), f"step: {move}"
        self.next_step = (move.position, move.step + 1)
        before, after = NAMES.index(move.before), NAMES.index(move.after)
        assert after in MOVES[before], f"no move: {move}"
        assert after != GONE or move.cause in CAUSES[before], f"no cause: {move}"
        assert after == GONE or not move.cause, f"a cause and it is there: {move}"
        self.seen[move.before, move.after, move.cause] += 1
        store = (move.store, move.is_topic)
        key, put = (store, move.sequence), (store, move.put_position, move.put_index)
        if before == NEW:
            self.come[store] += 1
            assert move.sequence < 0 or key not in self.numbered, f"it is there already: {move}"
        elif before == UNCOMMITTED:
            self.open_puts[put] -= 1
            assert self.open_puts[put] >= 0, f"no open put: {move}"
        else:
            assert self.numbered.pop(key, None) == move.before, f"it is not there: {move}"
        if after == UNCOMMITTED:
            self.open_puts[put] += 1
        elif after == GONE:
            self.gone[store, move.cause] += 1
        else:
            self.numbered[key] = move.after
        held = 4 <= after <= 5
        assert (move.delivery > 0) == (held or 4 <= before <= 5), f"delivery: {move}"
        assert (move.until >= 0) == (move.after in ("unborn", "delayed")), f"until: {move}"

    def compare(self, state: QueueManager) -> None:
        """Raises AssertionError unless the moves so far have come to this state."""
        found = (*state.stores.values(), *state.topics.values())
        stores = {(one.created_position, isinstance(one, Topic)): one for one in found}
        expected: Known = {}
        for key, store in stores.items():
            for sequence, message in store.messages.items():
                expected[key, sequence] = NAMES[state_of(message)]
            if isinstance(store, Topic):
                expected |= {(key, one): "published" for one in store.publications}
        assert self.numbered == expected, "the moves come to other states"
        puts: Counter[tuple[Store, int, int]] = Counter()
        for session in state.sessions.values():
            for messages in session.open_puts.values():
                for one in messages:
                    queue = one.queue
                    store = (queue.created_position, isinstance(queue, Topic))
                    puts[store, one.put_position, one.put_index] += 1
        assert +self.open_puts == puts, "the moves come to other open puts"
        counted = Counter((at, name) for (at, _), name in self.numbered.items())
        counted += Counter((put[0], "uncommitted put") for put in puts.elements())
        for key, store in stores.items():
            told = {name: count for name, count in zip(NAMES, store.counts, strict=False) if count}
            here = {name: count for (at, name), count in counted.items() if at == key}
            assert told == here, f"{store.destination}: counters {told}, moves {here}"
            gone = {cause: count for (at, cause), count in self.gone.items() if at == key}
            counts = {cause: count for cause, count in store.gone.items() if count}
            counts |= {cause: gone[cause] for cause in gone if cause not in store.gone}
            assert gone == counts, f"{store.destination}: gone {counts}, moves {gone}"
            assert self.come[key] == sum(here.values()) + sum(gone.values()), "conservation"
