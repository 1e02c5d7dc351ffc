//! Flows as the columns of a table.
//!
//! Of a million flows most say the same in most of 170 columns: nothing. So columns are compared, and those with
//! the same values share them.

use tcplab_pcap::Quantiles;
use tcplab_pcap::flow::{Direction, FlowSummary, TcpHalf};
use tcplab_tables::{Bools, Cell, Column, Dictionary, Floats, Ints, Strings, Table};

use super::fields::{self, Fields};

#[derive(Default)]
pub(super) struct FlowTable {
    rows: usize,
    /// All columns by name while rows come, those that differ at the end.
    columns: Vec<(String, Values)>,
    dictionary: Dictionary,
    /// For each column its name, and the place in `columns` of its values.
    names: Vec<(String, usize)>,
}

#[derive(PartialEq)]
enum Values {
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
            let place = kept.iter().position(|(_, other)| *other == values).unwrap_or(kept.len());
            self.names.push((name.clone(), place));
            if place == kept.len() {
                kept.push((name, values));
            }
        }
        self.columns = kept;
    }

    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub fn names(&self) -> &[(String, usize)] {
        &self.names
    }
}

impl Table for FlowTable {
    const NAME: &'static str = "flows";

    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> Vec<(&str, Column<'_>)> {
        self.columns.iter().map(|(name, values)| (name.as_str(), values.column())).collect()
    }
}

impl Values {
    fn column(&self) -> Column<'_> {
        match self {
            Values::Ints(ints) => Column::Ints(ints),
            Values::Floats(floats) => Column::Floats(floats),
            Values::Bools(bools) => Column::Bools(bools),
            Values::Strings(strings) => Column::Strings(strings),
        }
    }
}

/// Gives the values of a row to the columns, which come in the same order for every row.
struct Row<'t> {
    table: &'t mut FlowTable,
    next: usize,
    prefix: &'static str,
    /// What comes is null: the flow is not TCP.
    absent: bool,
}

impl Row<'_> {
    fn column(&mut self, name: &[&str], empty: fn() -> Values) -> &mut Values {
        let columns = &mut self.table.columns;
        if self.next == columns.len() {
            columns.push((format!("{}{}", self.prefix, name.join("_")), empty()));
        }
        self.next += 1;
        &mut columns[self.next - 1].1
    }

    fn push_integer(&mut self, name: &[&str], value: Option<i64>) {
        let value = value.filter(|_| !self.absent);
        if let Values::Ints(column) = self.column(name, || Values::Ints(Ints::default())) {
            column.push(value);
        }
    }

    fn push_real(&mut self, name: &[&str], value: Option<f64>) {
        let value = value.filter(|_| !self.absent);
        if let Values::Floats(column) = self.column(name, || Values::Floats(Floats::default())) {
            column.push(value);
        }
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
        let value = (!self.absent).then_some(value);
        if let Values::Bools(column) = self.column(&[name], || Values::Bools(Bools::default())) {
            column.push(value);
        }
    }

    fn text(&mut self, name: &'static str, value: &str) {
        let symbol = self.table.dictionary.symbol(value);
        if let Values::Strings(column) = self.column(&[name], || Values::Strings(Strings::default())) {
            symbol.push_to(column);
        }
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
