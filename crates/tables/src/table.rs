//! Declaring tables.

use crate::Column;

/// A result table.
pub trait Table {
    /// Its name: the file's name without the ending.
    const NAME: &'static str;
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Names and columns in order.
    fn columns(&self) -> Vec<(&str, Column<'_>)>;
}

/// Schema of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// Meaning of a row.
    pub doc: String,
    /// Columns that no row of any engine leaves null.
    pub required: &'static [&'static str],
    /// Counters of which each end of a flow has its own; a row of the table has their sums.
    pub counted: &'static [&'static str],
    /// In order.
    pub columns: Vec<ColumnSchema>,
}

/// Schema of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: &'static str,
    /// `int`, `float`, `bool` or `str`.
    pub kind: &'static str,
    /// `ns`, `bit/s`, `B`, `segments`, `packets`, `s` or empty.
    pub unit: &'static str,
    /// Type of its values.
    pub doc: String,
}

/// Lines of a documentation comment as one paragraph.
#[doc(hidden)]
pub fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Declares a table and the row it takes, from one list of columns. The documentation comments are the tables'
/// reference; a column's unit stands in brackets behind its type. The columns after the table's name are never null.
///
/// `each_end` declares a second table, of the rows that each end of a flow writes with what it knows. It also
/// declares the counters that are added up where both ends are joined into one row.
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $table:ident, $row:ident, $name:literal, [$($required:ident),+],
        each_end $end_table:ident, $end_row:ident, [$($counted:ident),+];
        $($(#[doc = $column_doc:literal])+ $column:ident: $cell:ty $([$unit:literal])?,)+
    ) => {
        $crate::table! {
            $(#[doc = $doc])+
            $table, $row, $name, [$($required),+], counted [$($counted),+];
            $($(#[doc = $column_doc])+ $column: $cell $([$unit])?,)+
        }
        $crate::table! {
            /// Rows of one end each; what only the other knows is null.
            $end_table, $end_row: Default, $name;
            $($(#[doc = $column_doc])+ $column: <$cell as $crate::Cell>::Optional $([$unit])?,)+
        }
    };
    (
        $(#[doc = $doc:literal])+
        $table:ident, $row:ident $(: $derived:ident)?, $name:literal
        $(, [$($required:ident),+])? $(, counted [$($counted:ident),+])?;
        $($(#[doc = $column_doc:literal])+ $column:ident: $cell:ty $([$unit:literal])?,)+
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $table {
            $($(#[doc = $column_doc])+ pub $column: <$cell as $crate::Cell>::Column,)+
        }

        #[doc = concat!("One row of the table `", $name, "`.")]
        #[derive(Clone, Copy, Debug $(, $derived)?)]
        pub struct $row {
            $($(#[doc = $column_doc])+ pub $column: $cell,)+
        }

        impl $table {
            /// Meaning of its rows.
            pub fn schema() -> $crate::TableSchema {
                // Each column that is required or counted exists.
                let _ = |_row: $row| ($($(_row.$required,)+)? $($(_row.$counted,)+)?);
                $crate::TableSchema {
                    name: $name,
                    doc: $crate::paragraph(&[$($doc),+]),
                    required: &[$($(stringify!($required)),+)?],
                    counted: &[$($(stringify!($counted)),+)?],
                    columns: vec![$($crate::ColumnSchema {
                        name: stringify!($column),
                        kind: <$cell as $crate::Cell>::KIND,
                        unit: concat!($($unit)?),
                        doc: $crate::paragraph(&[$($column_doc),+]),
                    }),+],
                }
            }
            /// Appends a row.
            pub fn push(&mut self, row: $row) {
                $(<$cell as $crate::Cell>::push_to(row.$column, &mut self.$column);)+
            }
            /// Appends rows, which is faster than to append each.
            pub fn push_all(&mut self, rows: &[$row]) {
                $(<$cell as $crate::Cell>::extend(&mut self.$column, rows.iter().map(|row| row.$column));)+
            }
            /// Makes room for this many more rows.
            pub fn reserve(&mut self, rows: usize) {
                $(<$cell as $crate::Cell>::reserve(&mut self.$column, rows);)+
            }
            /// Forgets all rows and keeps their memory for the next ones.
            pub fn clear(&mut self) {
                $(<$cell as $crate::Cell>::clear(&mut self.$column);)+
            }
            /// The rows in a new order: those that stand at these places now.
            pub fn reorder(&mut self, rows: &[u32]) {
                $(<$cell as $crate::Cell>::reorder(&mut self.$column, rows);)+
            }
        }

        impl $crate::Table for $table {
            const NAME: &'static str = $name;
            fn rows(&self) -> usize {
                let rows = [$(self.$column.len()),+];
                rows[0]
            }
            fn columns(&self) -> Vec<(&str, $crate::Column<'_>)> {
                vec![$((stringify!($column), <$cell as $crate::Cell>::erase(&self.$column))),+]
            }
        }
    };
}
