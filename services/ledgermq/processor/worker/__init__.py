"""The worker as a process: its settings, its log, its metrics, its supervisor."""
