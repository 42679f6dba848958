"""The benchmark: the performance table of the design, measured on this machine."""
