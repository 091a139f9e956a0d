"""Helpers of the tests: runtimes to run against and ways to look at messages.

Nothing here is a test. A helper is here when two test files need it; what only one
needs is in that file.
"""
