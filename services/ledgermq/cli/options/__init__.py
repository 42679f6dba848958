"""What commands have in common: options, the log they speak to, Spark behind them."""
