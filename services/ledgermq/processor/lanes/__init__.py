"""Outcomes on their way out: bodies filled in, chunks, the idempotent producer."""
