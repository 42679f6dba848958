"""LedgerMQ: a message-queue system whose only source of truth is a transaction log on Kafka."""
