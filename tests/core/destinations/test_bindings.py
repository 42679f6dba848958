"""What bindings hand on, over random histories, and which topics they take in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.protocol.topic_patterns import is_pattern, names_of, takes_in
from support.checks.checked_histories import check_new_history, examples
from support.generators.topic_generators import binding_histories
from support.model.bindings import takes_in as word_by_word
from support.planted.planted_faults import expect_found_by, named
from support.planted.topic_faults import BINDINGS, BINDINGS_SCRIPTS


@examples(80)
@given(binding_histories())
def test_histories_of_bindings_leave_a_sound_state_that_the_model_agrees_with(history):
    """What is put to topics goes on wherever it is bound to, as topics and bindings come and go."""
    check_new_history(history)


@pytest.mark.parametrize("planted", named(BINDINGS))
def test_fault_planted_in_what_bindings_hand_on_is_found(planted):
    """Histories of bindings are not blind to what is wrong with them."""
    expect_found_by(BINDINGS, planted)


@pytest.mark.parametrize("planted", named(BINDINGS_SCRIPTS))
def test_fault_that_random_histories_seldom_come_to_is_found_by_scripts(planted):
    """What takes many steps is drawn too seldom."""
    expect_found_by(BINDINGS_SCRIPTS, planted)


NAMES = st.text("ab./", min_size=1, max_size=7)
PATTERNS = st.text("ab*#./", min_size=1, max_size=7).filter(is_pattern)


@examples(400)
@given(PATTERNS, NAMES)
def test_pattern_takes_in_what_it_takes_in_word_by_word(pattern, name):
    """The regular expression says the same as words compared one by one."""
    assert takes_in(names_of(pattern), name) == word_by_word(pattern, name)


def test_pattern_of_many_words_is_compared_in_no_time():
    """No pattern of the greatest length makes a worker think for long."""
    pattern = ".".join(["*"] * 31 + ["#"] + ["*"] * 32)
    assert is_pattern(pattern)
    names = names_of(pattern)
    assert takes_in(names, ".".join("a" * 64))
    assert not takes_in(names, ".".join("a" * 62))
    assert not takes_in(names, "a" * 128)
