"""Tests for the tests of `support.side_by_side`: one of them hangs where no signal ends it."""

import ctypes


def test_before():
    """Passes."""


def test_that_hangs():
    """A lock of C that is taken twice, with Python's lock held."""
    lock = ctypes.create_string_buffer(64)
    functions = ctypes.PyDLL(None)
    functions.pthread_mutex_lock(lock)
    functions.pthread_mutex_lock(lock)


def test_behind():
    """Is never reached."""
