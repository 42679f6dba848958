"""The examples of docs/fairness.md print what stands below them."""

import contextlib
import io
import re

import pytest

from support.checkout import ROOT

PAGE = (ROOT / "docs" / "fairness.md").read_text(encoding="utf-8")
PARTS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, flags=re.S)
(PRELUDE, _), *EXAMPLES = PARTS


def test_the_page_has_an_example_for_each_thing_it_says():
    """Prefetch, who comes first, priorities and starvation, groups, both FIFO modes (DB-22)."""
    assert len(EXAMPLES) == 8
    assert all(printed for _, printed in EXAMPLES)


@pytest.mark.parametrize(("example", "printed"), EXAMPLES, ids=[one[:24] for one, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says(example, printed):
    """On a queue manager in memory."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(PRELUDE + example, "docs/fairness.md", "exec"), {})
    assert out.getvalue() == printed
