//! Columns: a buffer of values and, once a null occurs, which of them are valid.

use crate::Symbol;

/// Which values of a column are not null. Costs nothing until the first null: until then there are no bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validity(Vec<bool>);

impl Validity {
    #[inline]
    fn push(&mut self, valid: bool, rows_before: usize, room: usize) {
        if self.0.is_empty() {
            if valid {
                return;
            }
            self.0.reserve(room);
            self.0.resize(rows_before, true);
        }
        self.0.push(valid);
    }
    fn extend(&mut self, valid: impl Iterator<Item = bool> + Clone, rows_before: usize, room: usize) {
        if self.0.is_empty() {
            if valid.clone().all(|valid| valid) {
                return;
            }
            self.0.reserve(room);
            self.0.resize(rows_before, true);
        }
        self.0.extend(valid);
    }
    /// Whether row `row` holds a value.
    pub fn is_valid(&self, row: usize) -> bool {
        self.0.is_empty() || self.0.get(row).copied().unwrap_or(false)
    }
    /// Validity by row; none: no row is null.
    pub fn bits(&self) -> Option<&[bool]> {
        (!self.0.is_empty()).then_some(&self.0)
    }
    fn set(&mut self, row: usize) {
        if let Some(bit) = self.0.get_mut(row) {
            *bit = true;
        }
    }
}

macro_rules! column {
    ($(#[$doc:meta])* $name:ident of $value:ty, null as $null:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            values: Vec<$value>,
            validity: Validity,
        }

        impl $name {
            /// Appends a value or a null.
            #[inline]
            pub fn push(&mut self, value: Option<$value>) {
                self.validity.push(value.is_some(), self.values.len(), self.values.capacity());
                self.values.push(value.unwrap_or($null));
            }
            /// Appends values and nulls.
            #[inline]
            pub fn extend(&mut self, values: impl Iterator<Item = Option<$value>> + Clone) {
                let rows_before = self.values.len();
                self.values.extend(values.clone().map(|value| value.unwrap_or($null)));
                let valid = values.map(|value| value.is_some());
                self.validity.extend(valid, rows_before, self.values.capacity());
            }
            /// Makes room for this many more rows.
            pub fn reserve(&mut self, rows: usize) {
                self.values.reserve(rows);
            }
            /// Replaces the value of row `row`, if there is one.
            pub fn set(&mut self, row: usize, value: $value) {
                if let Some(slot) = self.values.get_mut(row) {
                    *slot = value;
                    self.validity.set(row);
                }
            }
            /// Forgets all rows and keeps their memory.
            pub fn clear(&mut self) {
                self.values.clear();
                self.validity.0.clear();
            }
            /// Its rows in a new order: those that stand at these places now.
            pub fn reorder(&mut self, rows: &[u32]) {
                self.values = rows.iter().map(|&row| self.values[row as usize]).collect();
                if !self.validity.0.is_empty() {
                    self.validity.0 = rows.iter().map(|&row| self.validity.0[row as usize]).collect();
                }
            }
            /// The value of row `row`; none where it is null or there is no such row.
            pub fn get(&self, row: usize) -> Option<$value> {
                self.values.get(row).copied().filter(|_| self.validity.is_valid(row))
            }
            /// All values; what stands at a null means nothing.
            pub fn values(&self) -> &[$value] {
                &self.values
            }
            /// Which values are not null.
            pub fn validity(&self) -> &Validity {
                &self.validity
            }
            /// Number of rows.
            pub fn len(&self) -> usize {
                self.values.len()
            }
            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                self.values.is_empty()
            }
            /// Values by row, none for a null.
            pub fn iter(&self) -> impl Iterator<Item = Option<$value>> + '_ {
                (0..self.len()).map(|row| self.get(row))
            }
        }
    };
}

column! {
    /// Integers.
    Ints of i64, null as 0
}
column! {
    /// Floating-point numbers.
    Floats of f64, null as 0.0
}
column! {
    /// Truth values.
    Bools of bool, null as false
}
column! {
    /// Dictionary-coded strings; the codes are those of the run's dictionary.
    Strings of u32, null as u32::MAX
}

impl Strings {
    /// Symbols by row, none for a null.
    pub fn symbols(&self) -> impl Iterator<Item = Option<Symbol>> + '_ {
        self.iter().map(|code| code.map(Symbol::from_code))
    }
}

/// A column of any type, for those who write tables out.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// Integers.
    Ints(&'a Ints),
    /// Floating-point numbers.
    Floats(&'a Floats),
    /// Truth values.
    Bools(&'a Bools),
    /// Dictionary-coded strings.
    Strings(&'a Strings),
}

/// A value that a row can hold, and the column it goes to.
pub trait Cell {
    /// The column's type.
    type Column: Default;
    /// A cell of this type that may be null.
    type Optional: Cell;
    /// The type's name: `int`, `float`, `bool` or `str`.
    const KIND: &'static str;
    /// Appends this value to `column`.
    fn push_to(self, column: &mut Self::Column);
    /// Appends values to `column`.
    fn extend(column: &mut Self::Column, values: impl Iterator<Item = Self> + Clone);
    /// Makes room for this many more rows of `column`.
    fn reserve(column: &mut Self::Column, rows: usize);
    /// Forgets the rows of `column` and keeps their memory.
    fn clear(column: &mut Self::Column);
    /// The rows of `column` in a new order: those that stand at these places now.
    fn reorder(column: &mut Self::Column, rows: &[u32]);
    /// The column, its type erased.
    fn erase(column: &Self::Column) -> Column<'_>;
}

macro_rules! cell {
    ($value:ty => $column:ident, $kind:literal, $convert:expr) => {
        impl Cell for $value {
            type Column = $column;
            type Optional = Option<$value>;
            const KIND: &'static str = $kind;
            #[inline]
            fn push_to(self, column: &mut $column) {
                column.push(Some($convert(self)));
            }
            #[inline]
            fn extend(column: &mut $column, values: impl Iterator<Item = $value> + Clone) {
                column.extend(values.map(|value| Some($convert(value))));
            }
            fn reserve(column: &mut $column, rows: usize) {
                column.reserve(rows);
            }
            fn clear(column: &mut $column) {
                column.clear();
            }
            fn reorder(column: &mut $column, rows: &[u32]) {
                column.reorder(rows);
            }
            fn erase(column: &$column) -> Column<'_> {
                Column::$column(column)
            }
        }

        impl Cell for Option<$value> {
            type Column = $column;
            type Optional = Option<$value>;
            const KIND: &'static str = $kind;
            #[inline]
            fn push_to(self, column: &mut $column) {
                column.push(self.map($convert));
            }
            #[inline]
            fn extend(column: &mut $column, values: impl Iterator<Item = Option<$value>> + Clone) {
                column.extend(values.map(|value| value.map($convert)));
            }
            fn reserve(column: &mut $column, rows: usize) {
                column.reserve(rows);
            }
            fn clear(column: &mut $column) {
                column.clear();
            }
            fn reorder(column: &mut $column, rows: &[u32]) {
                column.reorder(rows);
            }
            fn erase(column: &$column) -> Column<'_> {
                Column::$column(column)
            }
        }
    };
}

// Counts beyond 2^63 cannot occur in a run; saturation keeps the conversion total.
cell!(u64 => Ints, "int", |value: u64| i64::try_from(value).unwrap_or(i64::MAX));
cell!(i64 => Ints, "int", |value: i64| value);
cell!(f64 => Floats, "float", |value: f64| value);
cell!(bool => Bools, "bool", |value: bool| value);
cell!(Symbol => Strings, "str", Symbol::code);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_not_a_zero() {
        let mut column = Ints::default();
        column.push(Some(7));
        column.push(None);
        column.push(Some(0));
        assert_eq!(column.iter().collect::<Vec<_>>(), [Some(7), None, Some(0)]);
    }

    #[test]
    fn room_that_is_made_ahead_is_used() {
        let mut column = Ints::default();
        column.reserve(100);
        assert!(column.is_empty());
        let room = column.values.capacity();
        (0..100).for_each(|row| column.push((row % 2 == 0).then_some(row)));
        assert_eq!((column.values.capacity(), column.validity.0.capacity()), (room, room));
    }

    #[test]
    fn a_column_without_nulls_keeps_no_validity() {
        let mut column = Floats::default();
        column.push(Some(1.0));
        assert!(column.validity().bits().is_none());
        assert_eq!(column.get(1), None);
    }

    #[test]
    fn values_appended_together_are_those_appended_one_by_one() {
        let parts: [&[Option<i64>]; 4] = [&[Some(1), Some(2)], &[], &[Some(3), None], &[Some(4)]];
        let (mut together, mut apart) = (Ints::default(), Ints::default());
        for part in parts {
            together.extend(part.iter().copied());
            part.iter().for_each(|&value| apart.push(value));
            assert_eq!(together, apart);
        }
    }

    #[test]
    fn a_cleared_column_knows_nothing_of_its_earlier_nulls() {
        let mut column = Ints::default();
        column.push(None);
        column.clear();
        assert!(column.is_empty());
        column.push(Some(1));
        assert!(column.validity().bits().is_none());
        column.push(None);
        assert_eq!(column.iter().collect::<Vec<_>>(), [Some(1), None]);
    }

    #[test]
    fn rows_in_a_new_order_take_their_nulls_along() {
        let mut column = Ints::default();
        for value in [Some(1), None, Some(3)] {
            column.push(value);
        }
        column.reorder(&[1, 2, 0]);
        assert_eq!(column.iter().collect::<Vec<_>>(), [None, Some(3), Some(1)]);
    }

    #[test]
    fn setting_a_null_makes_it_valid() {
        let mut column = Ints::default();
        column.push(None);
        column.set(0, 5);
        column.set(1, 6);
        assert_eq!(column.iter().collect::<Vec<_>>(), [Some(5)]);
    }
}
