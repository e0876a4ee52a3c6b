"""Traces of agents: one reader per format, what each call was, and the weights of paths that follow."""
