"""Traces and the views of them: events, averages, trees, memory."""
