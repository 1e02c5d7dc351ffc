//! Flows as the columns of a table.
//!
//! Of a million flows most say the same in most of 170 columns: nothing. So a column is one value and a count until a
//! second value comes, and columns that turn out equal share their values.

use tcplab_pcap::Quantiles;
use tcplab_pcap::flow::{Direction, End, FlowSummary, TcpHalf};
use tcplab_pcap::parse::Protocol;
use tcplab_tables::{Bools, Cell, Column, Dictionary, Floats, Ints, Strings, Symbol, Table};

use super::fields::{self, Fields};

#[derive(Default)]
pub(super) struct FlowTable {
    rows: usize,
    /// All columns by name while rows come, those that vary and differ at the end.
    columns: Vec<(String, Values)>,
    dictionary: Dictionary,
    /// For each column its name, and where its values are.
    names: Vec<(String, Place)>,
}

/// Where the values of a column are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In this column of the table.
    Column(usize),
    /// This one in all rows.
    Constant(Value),
}

/// One value of a column; none: null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(Option<i64>),
    Float(Option<f64>),
    Bool(Option<bool>),
    Text(Symbol),
}

#[derive(PartialEq)]
enum Values {
    /// So many times this one.
    Same(Value, usize),
    Ints(Ints),
    Floats(Floats),
    Bools(Bools),
    Strings(Strings),
}

impl FlowTable {
    pub fn of(flows: impl Iterator<Item = FlowSummary>) -> FlowTable {
        let mut table = FlowTable::default();
        for flow in flows {
            table.row(&flow);
            table.rows += 1;
        }
        // Without a flow the names and types are still those of flows.
        if table.rows == 0 {
            table.row(&nothing());
        }
        table.share();
        table
    }

    fn row(&mut self, flow: &FlowSummary) {
        let mut row = Row { table: self, next: 0, prefix: "", absent: false };
        row.integer("flow", Some(i64::try_from(flow.number).unwrap_or(i64::MAX)));
        for (end, [address, port]) in
            [["client", "client_port"], ["server", "server_port"]].into_iter().enumerate()
        {
            row.text(address, &flow.endpoints[end].address.to_string());
            row.integer(port, Some(i64::from(flow.endpoints[end].port)));
        }
        row.integer("duration", Some(flow.duration()));
        let backward = flow.halves[1].payload_bytes > flow.halves[0].payload_bytes;
        row.text("main", if backward { "backward" } else { "forward" });
        fields::flow(flow, &mut row);
        for (direction, prefix) in [(Direction::Forward, "forward_"), (Direction::Backward, "backward_")] {
            row.prefix = prefix;
            fields::half(flow, direction, &mut row);
            row.absent = flow.tcp.is_none();
            match &flow.tcp {
                Some(tcp) => fields::tcp(&tcp.halves[direction.index()], &mut row),
                None => fields::tcp(&TcpHalf::default(), &mut row),
            }
            row.absent = false;
        }
    }

    fn share(&mut self) {
        let mut kept: Vec<(String, Values)> = Vec::new();
        for (name, values) in std::mem::take(&mut self.columns) {
            if let Values::Same(value, _) = values {
                self.names.push((name, Place::Constant(value)));
                continue;
            }
            let place = kept.iter().position(|(_, other)| *other == values).unwrap_or(kept.len());
            self.names.push((name.clone(), Place::Column(place)));
            if place == kept.len() {
                kept.push((name, values));
            }
        }
        self.columns = kept;
    }

    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The columns by name, in order, and where their values are. Those with the same values share a column.
    pub fn names(&self) -> &[(String, Place)] {
        &self.names
    }
}

/// A flow of which nothing is known.
fn nothing() -> FlowSummary {
    FlowSummary {
        number: 0,
        first_packet: 0,
        protocol: Protocol::default(),
        interface: 0,
        endpoints: Default::default(),
        first: 0,
        last: 0,
        end: End::Open,
        halves: Default::default(),
        tcp: None,
    }
}

impl Table for FlowTable {
    const NAME: &'static str = "flows";

    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> Vec<(&str, Column<'_>)> {
        self.columns.iter().filter_map(|(name, values)| Some((name.as_str(), values.column()?))).collect()
    }
}

impl Values {
    #[inline]
    fn push(&mut self, value: Value) {
        if let Values::Same(same, rows) = self {
            if *same == value {
                *rows += 1;
                return;
            }
            *self = same.repeated(*rows);
        }
        match (self, value) {
            (Values::Ints(column), Value::Int(value)) => column.push(value),
            (Values::Floats(column), Value::Float(value)) => column.push(value),
            (Values::Bools(column), Value::Bool(value)) => column.push(value),
            (Values::Strings(column), Value::Text(symbol)) => symbol.push_to(column),
            _ => unreachable!("a column's values have one type"),
        }
    }

    /// The column as it is written; none while it holds one value.
    fn column(&self) -> Option<Column<'_>> {
        Some(match self {
            Values::Same(..) => return None,
            Values::Ints(ints) => Column::Ints(ints),
            Values::Floats(floats) => Column::Floats(floats),
            Values::Bools(bools) => Column::Bools(bools),
            Values::Strings(strings) => Column::Strings(strings),
        })
    }
}

impl Value {
    fn repeated(self, rows: usize) -> Values {
        fn column<C: Default>(rows: usize, push: impl Fn(&mut C)) -> C {
            let mut column = C::default();
            (0..rows).for_each(|_| push(&mut column));
            column
        }
        match self {
            Value::Int(value) => Values::Ints(column(rows, |ints: &mut Ints| ints.push(value))),
            Value::Float(value) => Values::Floats(column(rows, |floats: &mut Floats| floats.push(value))),
            Value::Bool(value) => Values::Bools(column(rows, |bools: &mut Bools| bools.push(value))),
            Value::Text(symbol) => Values::Strings(column(rows, |strings| symbol.push_to(strings))),
        }
    }
}

/// Gives the values of a row to the columns, which come in the same order for every row.
struct Row<'t> {
    table: &'t mut FlowTable,
    next: usize,
    prefix: &'static str,
    /// The next values are null: the flow is not TCP.
    absent: bool,
}

impl Row<'_> {
    fn push(&mut self, name: &[&str], value: Value) {
        let columns = &mut self.table.columns;
        if let Some((_, values)) = columns.get_mut(self.next) {
            values.push(value);
        } else {
            columns.push((format!("{}{}", self.prefix, name.join("_")), Values::Same(value, 1)));
        }
        self.next += 1;
    }

    fn push_integer(&mut self, name: &[&str], value: Option<i64>) {
        self.push(name, Value::Int(value.filter(|_| !self.absent)));
    }

    fn push_real(&mut self, name: &[&str], value: Option<f64>) {
        self.push(name, Value::Float(value.filter(|_| !self.absent)));
    }
}

impl Fields for Row<'_> {
    fn integer(&mut self, name: &'static str, value: Option<i64>) {
        self.push_integer(&[name], value);
    }

    fn real(&mut self, name: &'static str, value: Option<f64>) {
        self.push_real(&[name], value);
    }

    fn truth(&mut self, name: &'static str, value: bool) {
        self.push(&[name], Value::Bool((!self.absent).then_some(value)));
    }

    fn text(&mut self, name: &'static str, value: &str) {
        let symbol = self.table.dictionary.symbol(value);
        self.push(&[name], Value::Text(symbol));
    }

    fn spread(&mut self, name: &'static str, values: &Quantiles) {
        let count = Some(values.count()).filter(|&count| count > 0);
        self.push_integer(&[name, "count"], count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
        self.push_integer(&[name, "min"], values.min());
        self.push_real(&[name, "mean"], values.mean());
        for (part, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            self.push_integer(&[name, part], values.quantile(share));
        }
        self.push_integer(&[name, "max"], values.max());
    }
}
