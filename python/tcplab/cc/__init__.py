"""Congestion controls as C files: what they say of themselves, compiling them, and trying them out."""

from tcplab.cc.describe import Description, Parameter, describe, described_file, shipped
from tcplab.cc.errors import ControlFileError, NoCompilerError

__all__ = [
    "ControlFileError",
    "Description",
    "NoCompilerError",
    "Parameter",
    "describe",
    "described_file",
    "shipped",
]
