//! Rows from all threads into the run directory, in batches that survive the process.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use tcplab_plan::Flow;
use tcplab_probe::diag::ControlInfo;
use tcplab_probe::sockets::Sample;
use tcplab_tables::arrow::record_batch;
use tcplab_tables::{
    Dictionary, EchoBatches, EchoRow, EchoTally, Echoes, EndFlowRow, EndFlows, EndIntervalRow, EndIntervals,
    EventRow, Events, FetchRow, Fetches, GaugeRow, Gauges, HostRow, Hosts, LegRow, Legs, PingRow, Pings,
    RouteRow, Routes, Sockets, Symbol, Table,
};
use tcplab_traffic::{Exchange, Fetch, Interval, Ping, Role, Sink, Summary, TrafficError};

use crate::destination::Destination;
use crate::output;
use crate::sampling::{self, Symbols, Timeouts, socket_row};

/// Why rows could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: ArrowError,
}

impl WriteError {
    fn new(path: PathBuf, source: impl Into<ArrowError>) -> WriteError {
        WriteError { path, source: source.into() }
    }

    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match &self.source {
            ArrowError::IoError(_, error) if error.kind() == io::ErrorKind::StorageFull => {
                "free space on this disk, or write elsewhere with --output"
            }
            _ => "give a run directory that exists and can be written",
        }
    }
}

/// Collects rows, and writes them when asked.
pub struct Recorder {
    node: String,
    rows: Mutex<Rows>,
    timeouts: Mutex<Timeouts>,
    gauges: OnceLock<Vec<sampling::Gauges>>,
    files: Mutex<Files>,
}

/// Rows that are not written yet.
#[derive(Default)]
pub struct Rows {
    dictionary: Dictionary,
    node: String,
    flows: EndFlows,
    intervals: EndIntervals,
    sockets: Sockets,
    gauges: Gauges,
    legs: Legs,
    hosts: Hosts,
    echoes: Echoes,
    echo_batches: EchoBatches,
    fetches: Fetches,
    pings: Pings,
    events: Events,
    routes: Routes,
}

struct Files {
    destination: Destination,
    node: String,
    /// Where the next rows go. Two sets of buffers take turns: new ones would be faulted in page by page each time.
    spare: Rows,
    open: BTreeMap<&'static str, StreamWriter<Box<dyn Write + Send>>>,
    rows: BTreeMap<&'static str, u64>,
}

impl Recorder {
    /// Writes the tables of `node`.
    pub fn new(node: &str, destination: Destination) -> Recorder {
        Recorder {
            node: node.to_owned(),
            rows: Mutex::new(Rows { node: node.to_owned(), ..Rows::default() }),
            timeouts: Mutex::default(),
            gauges: OnceLock::new(),
            files: Mutex::new(Files {
                destination,
                node: node.to_owned(),
                spare: Rows { node: node.to_owned(), ..Rows::default() },
                open: BTreeMap::new(),
                rows: BTreeMap::new(),
            }),
        }
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Where files go.
    pub fn destination(&self) -> Destination {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).destination.clone()
    }

    /// The rows, to append to. Hold them shortly.
    pub fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the gauges of controls recorded, in the order of the controls that samples name.
    pub fn record_gauges(&self, gauges: Vec<sampling::Gauges>) {
        // There is one sampler a run.
        let _ = self.gauges.set(gauges);
    }

    /// Appends what a sample shows: of a connection that is yet to be established, timeouts alone.
    pub fn sample(&self, rows: &mut Rows, symbols: &mut Symbols, time: u64, sample: &Sample<'_>) {
        let row = socket_row(rows, symbols, time, sample);
        self.timeouts().record(rows, &row, sample);
        if !sample.was_established() {
            return;
        }
        if let ControlInfo::Published { control, .. } = sample.control
            && let Some(gauges) = self.gauges.get().and_then(|gauges| gauges.get(control))
        {
            gauges.record(rows, &row, sample.state);
        }
        rows.sockets.push(row);
    }

    /// The retransmission timeouts that rows of sockets have shown so far. To be locked after the rows.
    fn timeouts(&self) -> MutexGuard<'_, Timeouts> {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends all rows so far to their files. Encoding does not hold up those who record.
    pub fn flush(&self) -> Result<(), WriteError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut full = {
            let mut rows = self.rows();
            files.spare.dictionary.clone_from(&rows.dictionary);
            std::mem::replace(&mut *rows, std::mem::take(&mut files.spare))
        };
        let written = files.append_all(&full);
        full.clear();
        files.spare = full;
        written
    }

    /// Appends what is left and ends the files.
    pub fn finish(&self) -> Result<(), WriteError> {
        self.flush()?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = &mut *files;
        for (name, writer) in &mut files.open {
            let path = || files.destination.path(&file(name, &files.node));
            writer.finish().map_err(|e| WriteError::new(path(), e))?;
            writer.get_mut().flush().map_err(|e| WriteError::new(path(), e))?;
        }
        files.open.clear();
        Ok(())
    }

    /// Rows written, by table.
    pub fn written(&self) -> BTreeMap<&'static str, u64> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).rows.clone()
    }
}

fn file(table: &str, node: &str) -> String {
    format!("{table}.{node}.arrows")
}

impl Files {
    fn append_all(&mut self, rows: &Rows) -> Result<(), WriteError> {
        self.append(&rows.flows, &rows.dictionary)?;
        self.append(&rows.intervals, &rows.dictionary)?;
        self.append(&rows.sockets, &rows.dictionary)?;
        self.append(&rows.gauges, &rows.dictionary)?;
        self.append(&rows.legs, &rows.dictionary)?;
        self.append(&rows.hosts, &rows.dictionary)?;
        self.append(&rows.echoes, &rows.dictionary)?;
        self.append(&rows.echo_batches, &rows.dictionary)?;
        self.append(&rows.fetches, &rows.dictionary)?;
        self.append(&rows.pings, &rows.dictionary)?;
        self.append(&rows.events, &rows.dictionary)?;
        self.append(&rows.routes, &rows.dictionary)
    }

    fn append<T: Table>(&mut self, table: &T, dictionary: &Dictionary) -> Result<(), WriteError> {
        if table.rows() == 0 {
            return Ok(());
        }
        let file = file(T::NAME, &self.node);
        let failed = |error: ArrowError| WriteError::new(self.destination.path(&file), error);
        let batch = record_batch(table, dictionary).map_err(failed)?;
        let writer = match self.open.entry(T::NAME) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(none) => {
                let file = self.destination.create(&file).map_err(|e| failed(e.into()))?;
                let writer = StreamWriter::try_new(file, &batch.schema()).map_err(failed)?;
                none.insert(writer)
            }
        };
        writer.write(&batch).map_err(failed)?;
        writer.get_mut().flush().map_err(|e| failed(e.into()))?;
        *self.rows.entry(T::NAME).or_default() += table.rows() as u64;
        Ok(())
    }
}

impl Rows {
    /// Forgets all rows, but not the strings.
    fn clear(&mut self) {
        self.flows.clear();
        self.intervals.clear();
        self.sockets.clear();
        self.gauges.clear();
        self.legs.clear();
        self.hosts.clear();
        self.echoes.clear();
        self.echo_batches.clear();
        self.fetches.clear();
        self.pings.clear();
        self.events.clear();
        self.routes.clear();
    }

    /// The number of a string.
    pub fn symbol(&mut self, string: &str) -> Symbol {
        self.dictionary.symbol(string)
    }

    /// The number of this node's name.
    pub fn node(&mut self) -> Symbol {
        self.dictionary.symbol(&self.node)
    }

    /// Appends a route that is new or gone.
    #[cfg_attr(not(feature = "local"), allow(dead_code))] // only labs have routing protocols
    pub fn route(&mut self, row: RouteRow) {
        self.routes.push(row);
    }

    /// Appends a figure that a control publishes.
    pub fn gauge(&mut self, row: GaugeRow) {
        self.gauges.push(row);
    }

    /// Appends an event.
    pub fn event(&mut self, row: EventRow) {
        self.events.push(row);
    }

    /// Appends a leg of a split connection.
    pub fn leg(&mut self, row: LegRow) {
        self.legs.push(row);
    }

    /// Appends a host sample.
    pub fn host(&mut self, row: HostRow) {
        self.hosts.push(row);
    }
}

impl Sink for Recorder {
    fn interval(&self, flow: &Flow, row: &Interval) {
        let mut rows = self.rows();
        let flow = rows.symbol(&flow.name);
        rows.intervals.push(EndIntervalRow {
            time: Some(row.time),
            duration: Some(row.duration),
            flow: Some(flow),
            stream: Some(row.stream),
            bytes_received: row.bytes_received,
            bytes_sent: row.bytes_sent,
            goodput: row.bytes_received.map(|bytes| rate(bytes, row.duration)),
            retransmits: row.retransmits,
            lost: row.lost.map(|lost| lost as i64),
            out_of_order: row.out_of_order,
            duplicates: row.duplicates,
            jitter: row.jitter,
        });
    }

    fn summary(&self, flow: &Flow, row: &Summary) {
        let mut rows = self.rows();
        let end = EndFlowRow {
            flow: Some(rows.symbol(&flow.name)),
            stream: Some(row.stream),
            from: Some(rows.symbol(&flow.from)),
            to: Some(rows.symbol(&flow.to)),
            from_port: row.ports.map(|ports| u64::from(ports.0)),
            to_port: row.ports.map(|ports| u64::from(ports.1)),
            kind: Some(rows.symbol(flow.traffic.traits().name)),
            cc: flow.traffic.cc().map(|cc| rows.symbol(&cc.name)),
            start: Some(row.start),
            end: Some(row.end),
            bytes_sent: row.bytes_sent,
            bytes_received: row.bytes_received,
            goodput: row.bytes_received.map(|bytes| rate(bytes, row.end.saturating_sub(row.start))),
            segments_sent: row.segments_sent,
            retransmits: row.retransmits,
            rtos: row.rtos,
            losses_detected: row.losses_detected,
            cpu_sender: row.cpu_sender,
            cpu_receiver: row.cpu_receiver,
            complete: Some(row.complete),
            // Links know the losses, and the table of sockets the window; kernels keep no RTT samples.
            ..EndFlowRow::default()
        };
        rows.flows.push(end);
    }

    fn exchange(&self, flow: &Flow, row: &Exchange) {
        let mut rows = self.rows();
        let flow = rows.symbol(&flow.name);
        let Exchange { client, size, iteration, time, rtt } = *row;
        rows.echoes.push(EchoRow {
            flow,
            client,
            size,
            iteration: Some(iteration),
            time: Some(time),
            rtt,
            count: 1,
        });
    }

    fn fetch(&self, flow: &Flow, row: &Fetch) {
        let mut rows = self.rows();
        let flow = rows.symbol(&flow.name);
        let Fetch { stream, page, object, size, offset, bytes, time, first_byte, duration, cache } = *row;
        let cache = cache.map(|answer| rows.symbol(answer));
        rows.fetches.push(FetchRow {
            flow,
            stream,
            page,
            object,
            size,
            offset,
            bytes,
            time,
            first_byte,
            duration,
            cache,
        });
    }

    fn tally(&self, flow: &Flow, client: u64, size: u64, tally: &EchoTally) {
        let mut rows = self.rows();
        let flow = rows.symbol(&flow.name);
        let rows = &mut *rows;
        tally.pour(flow, client, size, &mut rows.echoes, &mut rows.echo_batches);
    }

    fn ping(&self, flow: &Flow, row: &Ping) {
        let mut rows = self.rows();
        let flow = rows.symbol(&flow.name);
        let Ping { time, stream, seq, rtt } = *row;
        rows.pings.push(PingRow { time, flow, stream, seq, rtt, lost: rtt.is_none() });
    }

    fn socket(&self, time: u64, last: &Sample<'_>) {
        self.sample(&mut self.rows(), &mut Symbols::default(), time, last);
    }

    fn event(&self, flow: &Flow, time: u64, stream: u64, event: &'static str, detail: Option<&'static str>) {
        let mut rows = self.rows();
        let (flow, event) = (rows.symbol(&flow.name), rows.symbol(event));
        let detail = detail.map(|detail| rows.symbol(detail));
        rows.event(EventRow { time, flow: Some(flow), stream: Some(stream), link: None, event, detail });
    }

    fn warning(&self, message: String, hint: String) {
        output::warn(&message, &hint);
    }

    fn failed(&self, flow: &Flow, error: &TrafficError) {
        if error.is_timeout() {
            // The network's doing, which is what is measured.
            return self.warning(format!("{}: {error}", flow.name), error.hint());
        }
        output::emit(&serde_json::json!({
            "event": "error", "flow": flow.name, "message": error.to_string(), "hint": error.hint(),
            "reset": error.is_reset(),
        }));
    }

    fn finished(&self, flow: &Flow, role: Role) {
        output::emit(&serde_json::json!({"event": "finished", "flow": flow.name, "role": role.name()}));
    }
}

/// bit/s of `bytes` in `duration` ns.
fn rate(bytes: u64, duration: u64) -> f64 {
    if duration == 0 { 0.0 } else { bytes as f64 * 8e9 / duration as f64 }
}
