"""The slow model's messages in doubt: what others took from a session (H20)."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


class ModelDoubts:
    """What is in doubt, worked out from the messages in flight."""

    sessions: list[Row]
    consumers: list[Row]
    messages: list[Row]

    def session(self, handle: int) -> Row | None:
        """An open session."""
        raise NotImplementedError

    def flight(self, session: Row) -> list[Row]:
        """Deliveries in flight of a session by number."""
        raise NotImplementedError

    def consumers_of(self, session: Row) -> list[Row]:
        """All consumers that a session ever opened, by number."""
        raise NotImplementedError

    def touch(self, name: str) -> None:
        """Notes a queue for delivery."""
        raise NotImplementedError

    def doubt(self, consumer: Row) -> int:
        """A consumer's delivery in doubt of which its session has not said that it hands it
        over.
        """
        session = self.session(consumer["session"])
        assert session is not None
        for message in self.flight(session):
            told = message["handing"] or message["delivery"] <= session["handed_through"]
            mine = message["consumer"] == consumer["number"]
            if mine and message["told_in_doubt"] and not told:
                number: int = message["delivery"]
                return number
        return 0

    def handed_through(self, session: Row, through: int) -> None:
        """Everything up to a delivery was handed over."""
        before = [one for one in self.consumers_of(session) if self.doubt(one)]
        last = session["next_delivery"] - 1
        session["handed_through"] = max(session["handed_through"], min(through, last))
        for consumer in before:
            if not self.doubt(consumer):
                self.touch(consumer["queue"])

    def leave_flight(self, message: Row, place: str) -> None:
        """A message is in nobody's hands any more."""
        holders = [one for one in self.consumers if one["session"] == message["session"]]
        if message["delivery"] in [self.doubt(one) for one in holders if self.doubt(one)]:
            self.touch(message["queue"])
        message["place"] = place
        message["handing"] = message["told_in_doubt"] = False
        message["session"] = message["consumer"] = message["delivery"] = None

    def has_doubt(self, consumer: Row) -> bool:
        """Whether a consumer's message in doubt must be handed over before it gets another."""
        mine = [one for one in self.messages if one["place"] == "flight"]
        mine = [one for one in mine if one["session"] == consumer["session"]]
        mine = [one for one in mine if one["consumer"] == consumer["number"]]
        unnumbered = [one for one in mine if one["delivery"] is None]
        return self.doubt(consumer) > 0 or any(
            one["uncounted_backout_count"] >= 0 for one in unnumbered
        )
