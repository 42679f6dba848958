"""Administration: changes, messages handled by an administrator, statuses."""
