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

/// Declares a table and the row it takes, from one list of columns.
#[macro_export]
macro_rules! table {
    (
        $(#[$doc:meta])*
        $table:ident, $row:ident, $name:literal;
        $($(#[$column_doc:meta])* $column:ident: $cell:ty,)+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $table {
            $($(#[$column_doc])* pub $column: <$cell as $crate::Cell>::Column,)+
        }

        #[doc = concat!("One row of the table `", $name, "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $row {
            $($(#[$column_doc])* pub $column: $cell,)+
        }

        impl $table {
            /// Appends a row.
            pub fn push(&mut self, row: $row) {
                $(<$cell as $crate::Cell>::push_to(row.$column, &mut self.$column);)+
            }
            /// Forgets all rows and keeps their memory for the next ones.
            pub fn clear(&mut self) {
                $(<$cell as $crate::Cell>::clear(&mut self.$column);)+
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
