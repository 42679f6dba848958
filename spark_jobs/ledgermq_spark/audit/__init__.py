"""The audit: compares log, outcomes, rebuilt and live state, and reports what disagrees."""
