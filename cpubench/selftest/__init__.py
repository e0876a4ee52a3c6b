"""What this host can tell apart, and whether it notices a quota and a competitor: both are made on purpose."""
