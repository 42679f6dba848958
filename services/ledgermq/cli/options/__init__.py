"""What several commands share: options, the queue manager that they speak to, and Spark."""
