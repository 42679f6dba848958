"""Plays the scripts of `scripts/`: every row of PROTOCOL.md §4, §5 and §6, and the SEQ rules."""

from pathlib import Path

import pytest

from support.scripts.play import play
from support.scripts.script import Script, scripts_of

SCRIPTS = scripts_of(Path(__file__).parent / "scripts")


def title(script: Script) -> str:
    """The script's title as the test's name."""
    return script.title.replace(" ", "_")


@pytest.mark.parametrize("script", SCRIPTS, ids=title)
def test_fold_answers_as_the_script_says(script):
    """Every line has its outcomes, in the fold and in the slow model, and leaves a sound state."""
    play(script)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=title)
def test_fold_restored_from_a_snapshot_after_every_entry_answers_the_same(script):
    """A state that comes from a checkpoint's bytes goes on as if it had never been written."""
    play(script, restarts=True)
