//! The class `Simulation`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcplab_sim::plan::Plan;
use tcplab_sim::{PlanError, SplitCounts};

use crate::capture::{Failure, Files};
use crate::{controls, tables};

/// Events between two looks at the clock: well under a millisecond's work.
const EVENTS_A_LOOK: u64 = 2_000;

/// How far a simulation has come.
#[pyclass(frozen, get_all)]
pub(crate) struct Progress {
    /// Simulated time, ns.
    time: u64,
    /// Simulated time at which the run ends at the latest, ns.
    duration: u64,
    /// Whether it has ended.
    done: bool,
    /// Goodput of each flow since the last call, bit/s.
    goodput: Py<PyDict>,
}

/// A simulation of one plan.
#[pyclass]
pub(crate) struct Simulation {
    /// None once finished.
    simulation: Option<tcplab_sim::Simulation>,
    failure: Failure,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (plan_json, capture_dir=None, libraries=None))]
    fn new(
        py: Python<'_>,
        plan_json: &str,
        capture_dir: Option<PathBuf>,
        libraries: Option<BTreeMap<String, PathBuf>>,
    ) -> PyResult<Simulation> {
        let plan: Plan = serde_json::from_str(plan_json)
            .map_err(|error| PyValueError::new_err(format!("the plan cannot be read: {error}")))?;
        let controls = controls::registered(libraries.unwrap_or_default())?;
        let mut simulation = tcplab_sim::Simulation::with_controls(&plan, &controls)
            .map_err(|problem| refused(py, &problem))?;
        let failure = Failure::default();
        if let (Some(directory), Some(capture)) = (capture_dir, &plan.capture) {
            let files =
                Files::create(&directory, simulation.interfaces(), capture.what, Arc::clone(&failure))
                    .map_err(|(path, error)| os_error(&path, &error))?;
            simulation.capture(Box::new(files)).map_err(|problem| refused(py, &problem))?;
        }
        Ok(Simulation { simulation: Some(simulation), failure })
    }

    /// Simulates for `wall_ms` milliseconds of real time, until a table is full, or until the run ends.
    fn advance(&mut self, py: Python<'_>, wall_ms: u64) -> PyResult<Progress> {
        let simulation = self.simulation.as_mut().ok_or_else(finished)?;
        let progress = py.detach(|| {
            let begin = Instant::now();
            let budget = Duration::from_millis(wall_ms);
            while !simulation.advance(EVENTS_A_LOOK) && !simulation.is_full() && begin.elapsed() < budget {}
            simulation.progress()
        });
        self.check_capture()?;
        let goodput = PyDict::new(py);
        for (flow, rate) in progress.goodput {
            goodput.set_item(flow, rate)?;
        }
        Ok(Progress {
            time: progress.time.as_ns(),
            duration: progress.duration.as_ns(),
            done: progress.done,
            goodput: goodput.unbind(),
        })
    }

    /// The rows of full tables by name, as Arrow IPC files; the simulation forgets them.
    fn take_full<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.simulation.as_mut().ok_or_else(finished)?;
        if simulation.is_full() {
            tables::with_rows(py, &simulation.take_full())
        } else {
            Ok(PyDict::new(py))
        }
    }

    /// The tables by name, as Arrow IPC files, without rows that were taken. Closes the captures. The run need not have ended.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.simulation.take().ok_or_else(finished)?;
        let tables = py.detach(|| simulation.finish());
        self.check_capture()?;
        tables::to_python(py, &tables)
    }

    /// Progress so far: events, packets, and simulated time in ns.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.simulation.as_ref().ok_or_else(finished)?;
        let stats = simulation.stats();
        let dict = PyDict::new(py);
        dict.set_item("events", stats.events)?;
        dict.set_item("packets", stats.packets)?;
        dict.set_item("simulated", stats.simulated.as_ns())?;
        if let Some(routing) = stats.routing {
            let entry = PyDict::new(py);
            entry.set_item("converged", routing.converged.as_secs_f64())?;
            entry.set_item("no_route", routing.no_route)?;
            entry.set_item("ttl_exceeded", routing.ttl_exceeded)?;
            dict.set_item("routing", entry)?;
        }
        let counted = |(node, counts): (usize, SplitCounts)| {
            let SplitCounts { accepted, refused, passed } = counts;
            (node as u64, accepted, refused, passed)
        };
        let accelerators: Vec<_> = simulation.accelerators().map(counted).collect();
        dict.set_item("accelerators", accelerators)?;
        Ok(dict)
    }
}

impl Simulation {
    /// A capture that could not be written is an error of the run, not a silent gap.
    fn check_capture(&self) -> PyResult<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), |(path, error)| Err(os_error(&path, &error)))
    }
}

/// Python's exception for a plan that is not simulated.
fn refused(py: Python<'_>, problem: &PlanError) -> PyErr {
    let parts = (problem.place(), problem.message(), problem.hint());
    let kind = py.import("tcplab.engine.errors").and_then(|module| module.getattr("PlanError"));
    kind.and_then(|kind| kind.call1(parts)).map_or_else(|error| error, PyErr::from_value)
}

/// With the number, message and file name that Python's own errors have.
pub(crate) fn os_error(path: &std::path::Path, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let message = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, message, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the simulation is finished")
}
