"""The diagram of message states as the protocol shows it, drawn from the table of moves.

`python -m support.checks.message_states` writes it into the page.
"""

from __future__ import annotations

from ledgermq.core.state.message_states import CAUSES, GONE, MOVES, NAMES, NEW
from support.checkout import SCHEMAS

PAGE = SCHEMAS / "protocol" / "delivery.md"
BEGIN, END = "<!-- message states: begin -->", "<!-- message states: end -->"


def drawn() -> str:
    """The diagram in Mermaid: an arrow for each move, with the causes of those that end."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for before, afters in MOVES.items():
        for after in afters:
            ends = ("[*]" if before == NEW else _name(before), "[*]" if after == GONE else None)
            arrow = f"    {ends[0]} --> {ends[1] or _name(after)}"
            causes = f": {', '.join(CAUSES[before])}" if after == GONE else ""
            lines.append(arrow + causes)
    return "\n".join([*lines, "```"])


def _name(state: int) -> str:
    return NAMES[state].replace(" ", "_")


def shown() -> str:
    """What the page shows behind the table of states."""
    text = PAGE.read_text(encoding="utf-8")
    part = text[text.index(BEGIN) : text.index(END)]
    return part[part.index("```mermaid") :].strip() if "```mermaid" in part else ""


def write() -> None:
    """Draws the diagram anew in the page."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, tail = text.partition(END)
    head = head.partition("```mermaid")[0].rstrip()
    PAGE.write_text(f"{head}\n\n{drawn()}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    write()
