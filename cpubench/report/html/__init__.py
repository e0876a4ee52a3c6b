"""The vendor report: one static file that a buyer can read, print, check and trust."""
