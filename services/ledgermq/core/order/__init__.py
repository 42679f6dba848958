"""Which message comes next, and for whom: selection, groups, affinity, FIFO modes."""
