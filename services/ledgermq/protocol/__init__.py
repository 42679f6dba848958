"""What stands on the log: its operations, outcomes, reasons and limits. Data only, no decisions."""
