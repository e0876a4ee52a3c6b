"""Agent tasks: pieces of work made of real tools, each step a span with its phase, its CPU time and its checks."""
