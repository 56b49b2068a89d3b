"""Carries recording into threads, tasks, futures and processes."""
