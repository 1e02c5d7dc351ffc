//! The Python module `tcplab._core`: conversions only, no logic.
