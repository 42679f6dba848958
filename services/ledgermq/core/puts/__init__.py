"""Messages taken in: what a Put says of groups and times, room in the storage, quotas."""
