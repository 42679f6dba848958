"""The audit: what is compared, which differences are told, and the report."""
