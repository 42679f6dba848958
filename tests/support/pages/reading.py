"""Reads a page as a browser does: which elements it has, and which text."""

from __future__ import annotations

from html.parser import HTMLParser

# What a user may give as a name, an id, a selector or a reason.
HOSTILE = "<script>alert(\"1\")</script>'><b onclick='x'>&amp;"
VOID = {"input", "meta", "br", "link", "img"}


class Page(HTMLParser):
    """A page taken apart: `elements` are names with attributes, `texts` what stands outside code.

    Raises:
        AssertionError: an element ends that is not the one that is open.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins and ends."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """A piece of text, or of code."""
        if self._open[-1:] not in (["script"], ["style"]):
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that can be read, pieces apart."""
        return " | ".join(self.texts)

    def all(self, tag: str, style: str = "") -> list[dict[str, str | None]]:
        """The attributes of each element of that name, and of that class if one is given."""
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and (not style or style in (attributes.get("class") or "").split())
        ]

    def is_harmless(self) -> bool:
        """Whether the only code is the page's own, and nothing comes from anywhere else."""
        handlers = {
            name for _, attributes in self.elements for name in attributes if name[:2] == "on"
        }
        sources = {"src", "href"} & {name for _, one in self.elements for name in one}
        return len(self.all("script")) == 1 and not handlers and not sources
