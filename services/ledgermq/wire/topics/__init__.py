"""The log topics of an installation, its registry, and what was declared skipped."""
