"""Law P: a destination takes each part of a source, another log, once and without a gap."""
