"""Shipped data: the reference, the scenarios, the JSON Schema of a run file."""
