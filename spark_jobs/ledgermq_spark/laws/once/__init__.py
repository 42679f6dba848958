"""What destinations take once: ids and parts of sources that they remember."""
