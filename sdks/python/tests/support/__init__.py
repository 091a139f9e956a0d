"""Helpers of the tests: runtimes to run against and ways to look at messages."""
