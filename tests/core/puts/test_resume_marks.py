"""Resume marks: faults planted in them are found by their scripts (§16)."""

import pytest

from support.planted.planted_faults import expect_found_by, named
from support.planted.put_faults import BELIEVED, RESUME_MARKS
from support.scripts.play import play_lines


@pytest.mark.parametrize("planted", named(RESUME_MARKS))
def test_fault_planted_in_resume_marks_is_found(planted):
    """Random histories have marks too; what must happen at one moment is scripted."""
    expect_found_by(RESUME_MARKS, planted)


@pytest.mark.parametrize("planted", named(BELIEVED))
def test_a_quota_that_holds_up_for_ever_is_found(planted):
    """Of what is refused for a quota."""
    expect_found_by(BELIEVED, planted)


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        (
            "messages_max=2 messages_resume=3",
            "messages_resume would be 3, above messages_max, which would be 2",
        ),
        (
            "bytes_max=2 bytes_resume=3",
            "bytes_resume would be 3, above bytes_max, which would be 2",
        ),
        ("messages_resume=-1", "messages_resume is -1, must be 0 to 9007199254740992"),
    ],
)
def test_a_mark_that_cannot_be_is_refused_by_name(settings, detail):
    """What would be wrong together is told together, with its values (§16)."""
    lines = f"open\ncreate q {settings} -> refused setting-invalid"
    session = play_lines(lines).state.sessions[0]
    assert session.replies[session.last_sequence].detail == detail
