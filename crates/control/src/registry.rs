//! The controls there are: found by name, with the parameters each has; and those that are added while running.

use core::ffi::c_void;
use std::collections::BTreeMap;

use crate::binding::{Definition, RawParameter};
use crate::control::ControlError;
use crate::gauge::Gauge;

include!(concat!(env!("OUT_DIR"), "/controls.rs"));

/// A number of a control that can be set per connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Its value unless set.
    pub default: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// Values are whole multiples of this.
    pub step: f64,
}

/// A control's operations and what it says of itself: one of `cc/`, or one that was compiled elsewhere.
#[derive(Clone, Copy)]
pub struct Table(pub(crate) &'static Definition);

impl Table {
    /// The control called `name`, `tl_` and its other names understood.
    pub fn find(name: &str) -> Result<Table, ControlError> {
        find(name).map(Table).ok_or_else(|| ControlError::Unknown(name.to_owned()))
    }

    /// The table that `CONGESTION_CONTROL` makes of a file compiled by itself (`tl_exported` of
    /// `tcplab_cc_native.h`). The text of an error says what the file lacks.
    ///
    /// # Safety
    /// `definition` is null, or leads to such a table, compiled with this version's headers, that stays where it
    /// is for as long as the process lives.
    pub unsafe fn from_pointer(definition: *const c_void) -> Result<Table, &'static str> {
        // SAFETY: as the caller promises.
        let table = unsafe { definition.cast::<Definition>().as_ref() };
        let table: &'static Definition = table.ok_or("it has no CONGESTION_CONTROL")?;
        table.fault().map_or(Ok(Table(table)), Err)
    }

    /// Name of the control.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Names of its phases, by number.
    pub fn phases(&self) -> Box<[&'static str]> {
        self.0.phases()
    }

    /// Its gauges, in the order of its `GAUGES`.
    pub fn gauges(&self) -> impl Iterator<Item = Gauge> + use<> {
        self.0.gauges()
    }

    /// Its parameters, in the order of its `PARAMETERS`.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + use<> {
        self.0.parameters().iter().map(RawParameter::public)
    }
}

/// The controls of a simulation: those of `cc/`, and those added to them, which are called by a key of the
/// caller's, such as the path of their file.
#[derive(Default)]
pub struct Registry {
    added: BTreeMap<String, Table>,
}

impl Registry {
    /// Adds a control, which is found before any other of that name.
    pub fn add(&mut self, key: impl Into<String>, table: Table) {
        self.added.insert(key.into(), table);
    }

    /// The control called `key`.
    pub fn find(&self, key: &str) -> Result<Table, ControlError> {
        self.added.get(key).copied().map_or_else(|| Table::find(key), Ok)
    }
}

/// Names of all controls, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    CONTROLS.iter().map(|control| control.name())
}

/// The parameters of the control called `name`; none if there is no such control.
pub fn parameters(name: &str) -> Option<impl Iterator<Item = Parameter>> {
    Some(find(name)?.parameters().iter().map(RawParameter::public))
}

/// The control called `name`, `tl_` and its other names understood.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    let name = name.strip_prefix("tl_").unwrap_or(name);
    let name = match name {
        // BBR without a version is the first one, as in Linux.
        "bbr" => "bbr1",
        "ledbat++" => "ledbatpp",
        "westwood+" => "westwood",
        name => name,
    };
    CONTROLS.iter().copied().find(|control| control.name() == name)
}

impl RawParameter {
    pub(crate) fn public(&'static self) -> Parameter {
        let scale = f64::from(self.scale);
        Parameter {
            name: self.name(),
            doc: self.doc(),
            default: f64::from(self.initial) / scale,
            min: f64::from(self.min) / scale,
            max: f64::from(self.max) / scale,
            step: 1.0 / scale,
        }
    }

    /// `value` in the control's own whole numbers; none if outside the range.
    pub(crate) fn whole(&self, value: f64) -> Option<u32> {
        whole(value, self.min, self.max, self.scale)
    }
}

/// A user's `value` in a control's own whole numbers, which are `scale` times it; none if it is not from `min` to
/// `max`.
pub fn whole(value: f64, min: u32, max: u32, scale: u32) -> Option<u32> {
    let scaled = (value * f64::from(scale)).round();
    (scaled >= f64::from(min) && scaled <= f64::from(max)).then_some(scaled as u32)
}
