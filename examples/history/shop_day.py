"""Thirteen minutes of a shop that sells by post: the history that the ten questions are asked of.

What is done in a minute of that day is done in half a second, one after the other, so that the
order is the same in every run. `Day.clock` says which minute a time on the log belongs to.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import ledgermq

SECONDS_A_MINUTE: Final = 0.5
# A broker's times are whole milliseconds: what is done after a mark must not seem to be before it.
MARK_SECONDS: Final = 0.01
TWO_O_CLOCK_US: Final = 1_772_460_000_000_000  # 2026-03-02 14:00 UTC
MINUTE_US: Final = 60_000_000
LAST_MINUTE: Final = 13
PATIENCE_SECONDS: Final = 30.0
CLIENTS: Final = ("web", "packer-1", "packer-2", "window", "letters", "books", "van-1", "van-2")


@dataclass(slots=True)
class Day:
    """When each minute of the day began, in µs of the log's time."""

    marks: list[int] = field(default_factory=list)

    def minute(self, number: int) -> None:
        """Wait until a minute of the day begins."""
        assert number == len(self.marks)
        if self.marks:
            due = self.marks[-1] / 1e6 + SECONDS_A_MINUTE
            time.sleep(max(0.0, due - time.time()))
        self.marks.append(time.time_ns() // 1_000)
        time.sleep(MARK_SECONDS)

    def clock(self, at: int) -> int:
        """The minute of the day, in µs since 1970, that a time on the log belongs to."""
        begun = sum(mark <= at for mark in self.marks)
        return TWO_O_CLOCK_US + (begun - 1) * MINUTE_US


def live_through(connect: Callable[..., ledgermq.Connection]) -> Day:
    """Let the day happen on a queue manager that has nothing yet."""
    with contextlib.ExitStack() as stack:
        clients = {name: stack.enter_context(connect(client_id=name)) for name in CLIENTS}
        return Shop(clients).live_through()


class Shop:
    """The programs of the shop, each with a connection of its own, and what they do."""

    def __init__(self, clients: dict[str, ledgermq.Connection]) -> None:
        self._clients = clients
        self._admin = clients["web"].admin
        self._web = clients["web"].session()

    def live_through(self) -> Day:
        """Everything, minute by minute."""
        day = Day()
        day.minute(0)
        self._open_the_shop()
        day.minute(1)
        self._order(1, 2, 3, 4)
        day.minute(2)
        packer, orders, answers = self._packer("packer-1")
        self._pack(packer, orders, answers)
        # It answers order 2, and then its printer fails.
        answers.send("packed", correlation_id=_next(orders).correlation_id)
        packer.flush()
        day.minute(3)
        packer.rollback()
        self._pack(packer, orders, answers)
        packer.close()
        self._publish(1, "tea")
        # Whatever this packer does with order 3, it fails.
        packer, orders, _ = self._packer("packer-2")
        for minute in (4, 5, 6):
            day.minute(minute)
            _next(orders)
            packer.rollback()
            if minute == 5:
                self._order(5, 6, 7, 8)
                self._order(9, 10, 11, 12, test=True)
        packer.close()
        self._publish(2, "coffee")
        self._send("queue:quotes", "quote-1", time_to_live=2 * SECONDS_A_MINUTE)
        day.minute(7)
        self._read_prices()
        day.minute(8)
        self._admin.move_messages(
            "queue:orders.failed", "queue:orders", actor="ann", reason="the address is mended"
        )
        day.minute(9)
        self._admin.purge_queue(
            "queue:orders", selector="test = TRUE", actor="bob", reason="the load test is over"
        )
        self._send_parcels()
        packer, orders, answers = self._packer("packer-1")
        for minute in (10, 11, 12):
            day.minute(minute)
            # Order 5 is packed, but its answer is forgotten.
            self._pack(packer, orders, answers)
            self._pack(packer, orders, None if minute == 10 else answers)
        packer.close()
        day.minute(LAST_MINUTE)
        self._load_parcels()
        return day

    def _open_the_shop(self) -> None:
        self._admin.create_queue("orders.failed")
        self._admin.create_queue(
            "orders", redelivery_limit=2, error_destination="queue:orders.failed"
        )
        for name in ("answers", "quotes", "parcels"):
            self._admin.create_queue(name)
        self._admin.create_topic("prices")
        # Subscriptions stay while nobody is there.
        self._subscriber("window").close()
        self._subscriber("letters").close()

    def _order(self, *numbers: int, test: bool = False) -> None:
        """Orders, those with odd numbers from the EU."""
        for number in numbers:
            region = "EU" if number % 2 else "US"
            properties = {"region": region} | ({"test": True} if test else {})
            self._send("queue:orders", f"order-{number}", properties=properties)

    def _publish(self, number: int, product: str, time_to_live: float = 0) -> None:
        self._send(
            "topic:prices",
            f"price-{number}",
            properties={"product": product},
            time_to_live=time_to_live,
        )

    def _send(self, destination: str, name: str, **options: object) -> None:
        with self._web.producer(destination) as producer:
            producer.send(name, correlation_id=name, **options)

    def _packer(self, name: str) -> tuple[ledgermq.Session, ledgermq.Consumer, ledgermq.Producer]:
        session = self._clients[name].session(transacted=True)
        return session, _one_by_one(session, "queue:orders"), session.producer("queue:answers")

    def _pack(
        self,
        session: ledgermq.Session,
        orders: ledgermq.Consumer,
        answers: ledgermq.Producer | None,
    ) -> None:
        """One order and its answer, together."""
        order = _next(orders)
        if answers is not None:
            answers.send("packed", correlation_id=order.correlation_id)
        session.commit()

    def _subscriber(self, name: str) -> ledgermq.Consumer:
        """The letters are about tea."""
        return (
            self._clients[name]
            .session()
            .consumer(
                "topic:prices",
                subscription=name,
                durable=True,
                selector="product = 'tea'" if name == "letters" else None,
            )
        )

    def _read_prices(self) -> None:
        """The books come only now, and the letters leave before the last price."""
        window, letters = self._subscriber("window"), self._subscriber("letters")
        for consumer in (window, window, letters):
            _next(consumer)
        letters.close()
        books = self._subscriber("books")
        self._publish(3, "tea", time_to_live=5 * SECONDS_A_MINUTE)
        for consumer in (window, books):
            _next(consumer)
            consumer.close()

    def _send_parcels(self) -> None:
        """Each shipment is a group of three; the second one is put in a wrong order."""
        with self._web.producer("queue:parcels") as producer:
            for shipment, numbers in (("A", (1, 2, 3)), ("B", (1, 3, 2))):
                for number in numbers:
                    place = ledgermq.GroupPlace(
                        group_id=f"shipment {shipment}".encode().ljust(24, b"."),
                        group_sequence=number,
                        last_in_group=number == 3,
                    )
                    producer.send("parcel", group=place, correlation_id=f"shipment-{shipment}")

    def _load_parcels(self) -> None:
        """Two vans take what comes next, and so one shipment goes with both."""
        first, second = (
            _one_by_one(self._clients[name].session(), "queue:parcels")
            for name in ("van-1", "van-2")
        )
        for van in (first, first, first, first, second, first):
            _next(van)


def _one_by_one(session: ledgermq.Session, queue: str) -> ledgermq.Consumer:
    """A consumer that holds no more than it works on."""
    return session.consumer(queue, prefetch=1)


def _next(consumer: ledgermq.Consumer) -> ledgermq.Message:
    found = consumer.receive(timeout=PATIENCE_SECONDS)
    assert found is not None
    return found
