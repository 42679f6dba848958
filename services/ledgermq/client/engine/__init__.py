"""One session's state behind its only lock, and what is done with it; threads and aio share it."""
