"""The state: records, their indexes and the counters of them; nothing decides here."""
