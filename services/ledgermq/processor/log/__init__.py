"""The log read beside the group: records, ends, sizes, the digest chain."""
