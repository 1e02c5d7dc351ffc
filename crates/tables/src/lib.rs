//! Typed column buffers of the result tables, and their Arrow encoding.
//!
//! A recorder pushes rows; each value goes straight into its column's buffer. Strings are kept once per
//! run in a [`Dictionary`] and referred to by [`Symbol`]. [`schema()`] says what every table holds.

#[macro_use]
mod table;

#[cfg(feature = "arrow")]
pub mod arrow;
mod column;
mod dictionary;
mod loss_tally;
mod schema;
mod tally;

pub use column::{Bools, Cell, Column, Floats, Ints, Strings, Validity};
pub use dictionary::{Dictionary, Symbol};
pub use loss_tally::LossTally;
pub use schema::*;
pub use table::{ColumnSchema, Table, TableSchema, paragraph};
pub use tally::{Batch, ECHO_HEAD, EchoTally, MAX_ECHO_ROWS};
