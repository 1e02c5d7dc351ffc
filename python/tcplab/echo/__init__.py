"""The agent behind `tcplab echo`: a test between two machines."""
