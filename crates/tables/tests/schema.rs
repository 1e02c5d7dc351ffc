//! The tables filled here are the ones Python reads: same names, same columns, same kinds.

use tcplab_tables::{Column, Echoes, Events, Flows, Intervals, Packets, Pings, Queues, Sockets, Table};

/// Name and kind of every column of `table`, read from the text of the Python schema.
fn python_columns(table: &str) -> Vec<(String, String)> {
    let schema = include_str!("../../../python/tcplab/results/schema.py");
    let begin = schema.find(&format!("\"{table}\": _columns(")).expect("the table is in the schema");
    schema[begin..]
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("    ),"))
        .map(|line| {
            let mut quoted = line.split('"').skip(1).step_by(2);
            let mut next = || quoted.next().expect("a column has a name and a kind").to_owned();
            (next(), next())
        })
        .collect()
}

fn rust_columns<T: Table + Default>() -> Vec<(String, String)> {
    let kind = |column| match column {
        Column::Ints(_) => "int",
        Column::Floats(_) => "float",
        Column::Bools(_) => "bool",
        Column::Strings(_) => "str",
    };
    let table = T::default();
    table.columns().into_iter().map(|(name, column)| (name.to_owned(), kind(column).to_owned())).collect()
}

fn assert_same<T: Table + Default>() {
    assert_eq!(rust_columns::<T>(), python_columns(T::NAME), "table {}", T::NAME);
}

#[test]
fn every_table_has_the_columns_of_the_python_schema() {
    assert_same::<Flows>();
    assert_same::<Intervals>();
    assert_same::<Sockets>();
    assert_same::<Queues>();
    assert_same::<Packets>();
    assert_same::<Echoes>();
    assert_same::<Pings>();
    assert_same::<Events>();
}
