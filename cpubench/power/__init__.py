"""Watts: read by meters, limited by caps that are verified and always given back."""
