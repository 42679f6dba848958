"""Metrics: what a worker shows of itself and of what it owns, for Prometheus."""
