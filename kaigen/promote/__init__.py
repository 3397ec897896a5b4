"""Promotion: what one environment runs becomes what the next one runs."""
