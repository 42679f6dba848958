"""Random histories in which messages are written again (PROTOCOL.md §22)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import administration
from ledgermq.protocol.operations import Operation
from support.generators.generators import WEIGHTS, Entry, Writer
from support.generators.handling_generators import WAITING, handling
from support.generators.naive_operations import common, sample_message

plain_messages = st.sampled_from((1, 2, 3)).map(
    lambda number: {
        name: value for name, value in sample_message(number, 4, 1, "").items() if name != "header"
    }
)
naive_relocations: st.SearchStrategy[Operation] = st.builds(
    administration.Relocate,
    **{name: handling[name] for name in (*common, "actor", "reason")},
    messages=st.lists(
        st.fixed_dictionaries(
            {
                "put_position": st.integers(-1, 30),
                "put_index": st.integers(0, 2),
                "places": st.lists(
                    st.fixed_dictionaries(
                        {
                            "created_position": st.integers(-1, 12),
                            "sequence": st.integers(-1, 5),
                        }
                    ),
                    max_size=3,
                ),
                "message": plain_messages,
                "header": st.just([]),
            }
        ),
        max_size=2,
    ),
)


class RelocationWriter(Writer):
    """Draws operations that suit the model's state, among them many a Relocate."""

    weights = (*WEIGHTS, *("relocate",) * 12, *("relocate_blindly",) * 3)

    def relocate_blindly(self, session: dict[str, Any]) -> None:
        """Whatever comes to mind."""
        del session
        self.write(self.draw(naive_relocations))

    def relocate(self, session: dict[str, Any]) -> None:
        """Live messages are written again, seldom as they were not."""
        live = [one for one in self.model.messages if one["place"] in (*WAITING, "flight")]
        if not live:
            self.put(session, "queue:s")
            return
        stores = (*self.model.queues, *self.model.subscriptions)
        created = {one["id"]: one["created_position"] for one in stores}
        copies: dict[tuple[int, int], Any] = {}
        for one in live:
            if one["queue"] not in created or self.one((True, False, False)):
                continue
            put = (one["put_position"], one["put_index"])
            copy = copies.setdefault(put, self._copy_of(one))
            number = one["sequence"] + self.one((0,) * 12 + (1,))
            copy["places"].append({"created_position": created[one["queue"]], "sequence": number})
        told: dict[str, Any] = {**self.common(session), "actor": "a", "reason": "r"}
        self.write(administration.Relocate(**told, messages=list(copies.values())))

    def _copy_of(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message as it was put."""
        header = message["header"]
        more = self.one((0,) * 7 + (1,))
        content = b"x" * (message["size"] - self.model.header_size(header) + more)
        return {
            "put_position": message["put_position"],
            "put_index": message["put_index"],
            "places": [],
            "message": {
                **{name: message[name] for name in ("message_id", "priority", "persistent")},
                "content": content,
            },
            "header": [] if header is None else [header],
        }


@st.composite
def relocation_histories(draw: st.DrawFn, steps: int = 30) -> list[Entry]:
    """Histories in which messages are written again, in whatever state they are."""
    return RelocationWriter(draw).history_of(steps)
