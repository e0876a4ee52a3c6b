"""The programs that the agents of tasks call: standard library only, each file runs by itself under any python3.

They are copied into the inputs of a run, so that their bytes are in its manifest. They stand for grep, cp, patch and
pip: those differ from host to host (GNU, busybox, uutils), and a bare server may lack them.
"""
