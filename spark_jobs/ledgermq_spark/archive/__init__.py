"""The archive of a log: its records, what the fold told of them, and states to go on from."""
