"""The slow model's redelivery: delays, limits, error destinations (PROTOCOL.md §15)."""

from __future__ import annotations

from typing import Any

from support.model.moves import ModelMoves

Row = dict[str, Any]
AGES_MS = 100 * 366 * 86_400_000


class ModelRedelivery(ModelMoves):
    """What becomes of deliveries that return with a backout."""

    time: int
    log_time: int

    def session(self, handle: int) -> Row | None:
        """An open session."""
        raise NotImplementedError

    def touch(self, name: str) -> None:
        """Notes a queue for delivery."""
        raise NotImplementedError

    def gone(self, message: Row, place: str) -> None:
        """A message leaves."""
        raise NotImplementedError

    def waits_until(self, message: Row) -> int:
        """Until when a message is unborn or delayed; -1: it is neither."""
        moments = {"unborn": message["deliver_at"], "delayed": message["delayed_until"]}
        return int(moments.get(message["place"], -1))

    def counted(self, message: Row) -> int:
        """Its backouts that count."""
        return int(message["backout_count"] - max(message["uncounted_backout_count"], 0))

    def come_back(self, message: Row, holder: Row, asked_ms: int) -> None:
        """It is delayed, or its delay of nothing is over at once; -1: none was asked for."""
        delay_ms = self.delay_ms(message, holder) if asked_ms < 0 else asked_ms
        if delay_ms == 0:
            self.offer_again(message)
            return
        message["place"] = "delayed"
        begins = max(self.time, self.log_time)
        message["delayed_until"] = self.rounded(begins + delay_ms * 1000)

    def delay_ms(self, message: Row, holder: Row) -> int:
        """The delay of the destination, else the consumer's, else the session's."""
        session = self.session(holder["session"])
        assert session is not None
        settings, count = self.settings_of(message["queue"]), self.counted(message)
        asked = [settings["redelivery_delay_override_ms"], holder["redelivery_delay_ms"]]
        asked.append(session["redelivery_delay_ms"])
        delay_ms, first = next(one for one in asked if one >= 0), 1
        for step in settings["redelivery_steps"]:
            if step["retries"] + 1 <= count:
                delay_ms, first = step["delay_ms"], step["retries"] + 1
        for _ in range(count - first):
            delay_ms = delay_ms * settings["redelivery_delay_multiplier_percent"] // 100
        return int(min(delay_ms, settings["redelivery_delay_max_ms"] or AGES_MS))

    def offer_again(self, message: Row) -> None:
        """It is available, or has come back too often."""
        if not 0 <= message["redelivery_limit"] < self.counted(message):
            message["place"] = "available"
            return
        self.send_away(message, "redelivery-limit")

    def send_away(self, message: Row, reason: str) -> None:
        """It goes to the error destination, or is dropped."""
        target = self.settings_of(message["queue"])["error_destination"]
        if target:
            self.park(message)
        self.gone(message, "moved" if target else "dropped")
        if target:
            self.transfer(message, target, reason)

    def end_waits(self, due: int) -> None:
        """What waits until a moment waits no longer."""
        over = [one for one in self.messages if 0 <= self.waits_until(one) <= due]
        for message in sorted(over, key=self.by_creation):
            self.touch(message["queue"])
            if message["place"] == "unborn":
                message["place"] = "available"
            else:
                message["delayed_until"] = -1
                self.offer_again(message)
