"""Checkpoints: when they are due, how they are written, what is stored, how one is loaded."""
