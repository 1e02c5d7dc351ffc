//! Typed column buffers of the result tables.
