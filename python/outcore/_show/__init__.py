"""Forecasts, plans and profiles as text, HTML and pictures."""
