"""The archive of a log: its records, the outcomes and moves folded from them, and states."""
