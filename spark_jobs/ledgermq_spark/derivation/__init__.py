"""The tables worked out from PROTOCOL.md without the fold, set by set."""
