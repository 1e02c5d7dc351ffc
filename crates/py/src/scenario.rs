//! The scenario language for Python: texts and data become plans as JSON; mistakes are raised as `ScenarioErrors`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString};
use serde_json::Value as Json;
use tcplab_plan::{Direction, Flow, Limit, Overhead, Plan, TcpSettings, Traffic};
use tcplab_scenario::quantity::{self, Dimension, QuantityError};
use tcplab_scenario::{Entry, Mark, Mistake, Mistakes, Node, Step, Value};

use crate::surroundings::Disk;

/// Where the exceptions are that Python raises and catches.
const ERRORS: &str = "tcplab.scenario.errors";

/// A scenario's or study's text, read, with the place of each value.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Document(tcplab_scenario::Document);

/// A key, or the number of an item.
#[derive(FromPyObject)]
enum PathStep {
    Item(usize),
    Key(String),
}

fn steps(path: Vec<PathStep>) -> Vec<Step> {
    let step = |step| match step {
        PathStep::Item(index) => Step::Item(index),
        PathStep::Key(key) => Step::Key(key),
    };
    path.into_iter().map(step).collect()
}

#[pymethods]
impl Document {
    /// Reads a YAML text called `name`.
    #[new]
    fn new(py: Python<'_>, text: &[u8], name: &str) -> PyResult<Document> {
        tcplab_scenario::Document::parse(text, name).map(Document).map_err(|found| raised(py, found.iter()))
    }

    /// A document of data that does not come from a text.
    #[staticmethod]
    fn of(data: &Bound<'_, PyAny>, name: &str) -> PyResult<Document> {
        Ok(Document(node(data, &Mark::nowhere(name), 0)?.into()))
    }

    /// The part at a path; None if there is none.
    fn part(&self, path: Vec<PathStep>) -> Option<Document> {
        self.0.part(&steps(path)).map(Document)
    }

    /// The value at a path as plain data; None if there is none.
    fn plain<'py>(&self, py: Python<'py>, path: Vec<PathStep>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.node(&steps(path)).map(|node| plain(py, node)).transpose()
    }

    /// Whether there is a value at a path.
    fn holds(&self, path: Vec<PathStep>) -> bool {
        self.0.node(&steps(path)).is_some()
    }

    /// A mistake at a path, as a `ScenarioError`.
    #[pyo3(signature = (path, message, suggestion = "", *, at_key = false))]
    fn mistake<'py>(
        &self,
        py: Python<'py>,
        path: Vec<PathStep>,
        message: &str,
        suggestion: &str,
        at_key: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        error_object(py, &self.0.mistake(&steps(path), message, suggestion, at_key))
    }

    /// The plan of the scenario as JSON, with overrides applied.
    #[pyo3(signature = (folder, sets, controls = None))]
    fn plan(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        sets: Vec<String>,
        controls: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let around = Disk { folder, controls };
        let plan = tcplab_scenario::plan(self.0.clone(), &sets, &around);
        json(&plan.map_err(|found| raised(py, found.iter()))?)
    }

    /// A mistake, as a `ScenarioError`, at the part that a place in the plan comes from, if it does.
    fn located<'py>(
        &self,
        py: Python<'py>,
        place: &str,
        message: &str,
        sets: Vec<String>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = tcplab_scenario::located(&self.0, &sets, place, message);
        found.map(|mistake| error_object(py, &mistake)).transpose()
    }

    /// A warning for each key, also of overrides, that has a new name.
    fn renamed_keys(&self, sets: Vec<String>) -> Vec<String> {
        tcplab_scenario::renamed_keys(&self.0, &sets)
    }

    /// A study's own keys as JSON, with every default filled in.
    fn study(&self, py: Python<'_>) -> PyResult<String> {
        json(&tcplab_scenario::study(&self.0).map_err(|found| raised(py, found.iter()))?)
    }
}

pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The mistakes as one exception.
fn raised<'m>(py: Python<'_>, found: impl Iterator<Item = &'m Mistake>) -> PyErr {
    let errors = found.map(|mistake| error_object(py, mistake)).collect::<PyResult<Vec<_>>>();
    let exception = errors.and_then(|errors| py.import(ERRORS)?.getattr("ScenarioErrors")?.call1((errors,)));
    exception.map_or_else(|error| error, PyErr::from_value)
}

fn error_object<'py>(py: Python<'py>, mistake: &Mistake) -> PyResult<Bound<'py, PyAny>> {
    let Mistake { file, line, column, path, value, message, suggestion, source, width } = mistake;
    let parts = (file, line, column, path, value, message, suggestion, source, width);
    py.import(ERRORS)?.getattr("ScenarioError")?.call1(parts)
}

/// A mistake as people read it: the place, the message, the line with a caret, the suggestion.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the fields of the exception")]
pub(crate) fn mistake_text(
    file: String,
    line: usize,
    column: usize,
    path: String,
    value: String,
    message: String,
    suggestion: String,
    source: String,
    width: usize,
) -> String {
    Mistake { file, line, column, path, value, message, suggestion, source, width }.to_string()
}

/// Data nests as deep as a text may.
const MAX_DEPTH: usize = 24;

fn node(data: &Bound<'_, PyAny>, mark: &Mark, depth: usize) -> PyResult<Node> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("the data is nested more than {MAX_DEPTH} deep")));
    }
    let written = |data: &Bound<'_, PyAny>| data.str().map(|text| text.to_string_lossy().into_owned());
    let made = |value, written| Ok(Node { mark: mark.clone(), value, written });
    if data.is_none() {
        made(Value::Null, String::new())
    } else if data.is_instance_of::<PyBool>() {
        made(Value::Bool(data.extract()?), written(data)?)
    } else if data.is_instance_of::<PyInt>() {
        let text = written(data)?;
        made(data.extract().map_or_else(|_| Value::Text(text.clone()), Value::Int), text)
    } else if data.is_instance_of::<PyFloat>() {
        made(Value::Float(data.extract()?), written(data)?)
    } else if data.is_instance_of::<PyString>() {
        made(Value::Text(written(data)?), written(data)?)
    } else if let Ok(mapping) = data.cast::<PyMapping>() {
        let items = mapping.items()?;
        let entries = items.iter().map(|item| {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            Ok(Entry { key: written(&key)?, mark: mark.clone(), value: node(&value, mark, depth + 1)? })
        });
        made(Value::Mapping(entries.collect::<PyResult<_>>()?), String::new())
    } else if let Ok(items) = data.cast::<PySequence>() {
        let items = items.try_iter()?.map(|item| node(&item?, mark, depth + 1));
        made(Value::List(items.collect::<PyResult<_>>()?), String::new())
    } else {
        made(Value::Text(written(data)?), written(data)?)
    }
}

fn plain<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &node.value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(yes) => PyBool::new(py, *yes).to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::List(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(plain(py, item)?))?;
            list.into_any()
        }
        Value::Mapping(entries) => {
            let mapping = PyDict::new(py);
            entries.iter().try_for_each(|entry| mapping.set_item(&entry.key, plain(py, &entry.value)?))?;
            mapping.into_any()
        }
    })
}

/// The schemas of what tcplab reads: `scenario`, `study` or `plan`.
#[pyfunction]
pub(crate) fn schema(of: &str) -> PyResult<String> {
    Ok(match of {
        "scenario" => tcplab_scenario::json_schema().to_string(),
        "study" => tcplab_scenario::study_schema().to_string(),
        "plan" => json(&schemars::schema_for!(Plan))?,
        _ => return Err(PyValueError::new_err(format!("no schema of {of:?}"))),
    })
}

/// Warnings about a plan before a run, one sentence each.
#[pyfunction]
pub(crate) fn warnings(plan: &str) -> PyResult<Vec<String>> {
    Ok(tcplab_scenario::warnings(&read(plan)?))
}

/// A plan, or a part of one, in words; as JSON.
#[pyfunction]
pub(crate) fn describe(what: &str, text: &str) -> PyResult<String> {
    match what {
        "plan" => json(&read::<Plan>(text)?.describe()),
        "direction" => json(&read::<Direction>(text)?.describe()),
        "flow" => json(&read::<Flow>(text)?.describe()),
        "limit" => json(&read::<Limit>(text)?.to_string()),
        _ => Err(PyValueError::new_err(format!("no part of a plan is called {what:?}"))),
    }
}

/// The sysctls that TCP settings of a plan (JSON) ask of a host.
#[pyfunction]
pub(crate) fn tcp_sysctls(settings: &str) -> PyResult<Vec<(String, String)>> {
    Ok(read::<TcpSettings>(settings)?.sysctls())
}

/// The plan of a repetition, counted from 1.
#[pyfunction]
pub(crate) fn repetition(plan: &str, number: u64) -> PyResult<String> {
    json(&tcplab_scenario::repetition(read(plan)?, number))
}

/// The plan as an engine executes it: each flow starts and stops later by its phase.
#[pyfunction]
pub(crate) fn with_phases(plan: &str) -> PyResult<String> {
    json(&tcplab_scenario::with_phases(read(plan)?))
}

/// The estimate of one run of a plan, as JSON.
#[pyfunction]
pub(crate) fn estimate(plan: &str) -> PyResult<String> {
    json(&read::<Plan>(plan)?.estimate())
}

/// Traits of all traffic of each kind, as JSON.
#[pyfunction]
pub(crate) fn traffic_kinds() -> PyResult<String> {
    json(&Traffic::KINDS)
}

/// Traits of all nodes of each kind that a scenario may name, as JSON.
#[pyfunction]
pub(crate) fn node_kinds() -> PyResult<String> {
    json(&tcplab_scenario::node_kinds())
}

/// The share of packets lost in the long run by netem's recursion.
#[pyfunction]
pub(crate) fn effective_loss(rate: f64, correlation: f64) -> f64 {
    tcplab_plan::effective_loss(rate, correlation)
}

/// The bytes on the wire of a frame of `frame_len` bytes, with a link direction's overhead (JSON).
#[pyfunction]
pub(crate) fn len_on_wire(overhead: &str, frame_len: u32) -> PyResult<u32> {
    Ok(read::<Overhead>(overhead)?.len_on_wire(frame_len))
}

/// A value of a kind, such as `time` or `sizes`, as JSON in base units.
#[pyfunction]
pub(crate) fn value(py: Python<'_>, kind: &str, data: &Bound<'_, PyAny>) -> PyResult<String> {
    match tcplab_scenario::value(kind, &node(data, &Mark::nowhere(kind), 0)?) {
        Some(Ok(value)) => Ok(Json::to_string(&value)),
        Some(Err(wrong)) => Err(refused(py, wrong)),
        None => Err(PyValueError::new_err(format!("no kind of value is called {kind:?}"))),
    }
}

/// The dimension (such as `time`) of a quantity and its value in the base unit.
#[pyfunction]
pub(crate) fn quantity_of(py: Python<'_>, text: &str) -> PyResult<(&'static str, f64)> {
    let read = quantity::parse(&quantity::Read::Text(text), &Dimension::ALL);
    let read = read.map_err(|wrong| refused(py, wrong))?;
    Ok((word(read.dimension), read.as_f64()))
}

/// The units of each dimension.
#[pyfunction]
pub(crate) fn units() -> Vec<(&'static str, Vec<&'static str>)> {
    let spellings = |dimension: Dimension| dimension.units().iter().map(|(unit, _)| *unit).collect();
    Dimension::ALL.map(|dimension| (word(dimension), spellings(dimension))).into()
}

fn word(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Time => "time",
        Dimension::Rate => "rate",
        Dimension::Size => "size",
        Dimension::Probability => "share",
        Dimension::Packets => "packets",
        Dimension::Bdp => "bdp",
    }
}

fn refused(py: Python<'_>, wrong: QuantityError) -> PyErr {
    let exception = py.import(ERRORS).and_then(|module| module.getattr("QuantityError"));
    let exception = exception.and_then(|kind| kind.call1((wrong.message, wrong.suggestion)));
    exception.map_or_else(|error| error, PyErr::from_value)
}

/// A plan's YAML text as JSON; a ValueError says what is wrong, and in which line.
#[pyfunction]
pub(crate) fn plan_yaml(text: &str) -> PyResult<String> {
    let read = tcplab_scenario::Document::parse_unbounded(text, "plan.yaml");
    let document = read.map_err(|found: Mistakes| {
        let first = found.iter().next();
        PyValueError::new_err(first.map(|m| format!("line {}: {}", m.line, m.message)).unwrap_or_default())
    })?;
    json(&tcplab_scenario::plain(&document.root))
}

/// Keys and values of the language.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Document>()?;
    module.add_function(wrap_pyfunction!(mistake_text, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(warnings, module)?)?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(tcp_sysctls, module)?)?;
    module.add_function(wrap_pyfunction!(repetition, module)?)?;
    module.add_function(wrap_pyfunction!(with_phases, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(traffic_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(node_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(effective_loss, module)?)?;
    module.add_function(wrap_pyfunction!(len_on_wire, module)?)?;
    module.add_function(wrap_pyfunction!(value, module)?)?;
    module.add_function(wrap_pyfunction!(quantity_of, module)?)?;
    module.add_function(wrap_pyfunction!(units, module)?)?;
    module.add_function(wrap_pyfunction!(plan_yaml, module)?)
}
