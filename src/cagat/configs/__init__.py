"""Published configurations, as data."""
