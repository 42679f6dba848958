"""Laws of redelivery, expiry and quotas, and the frames that only they are asked of."""
