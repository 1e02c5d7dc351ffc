"""tcplab: a laboratory for TCP performance."""
