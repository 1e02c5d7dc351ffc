"""Networks of real Linux hosts on this one machine: a network namespace for each node.

Every namespace is held by a process and has no name on disk, so it is gone with its process, however that
ends. `layout` says what each namespace holds, `lab` is the process that builds it, `testbed` is how the
rest of tcplab uses it.
"""
