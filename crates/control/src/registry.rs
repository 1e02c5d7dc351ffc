//! The controls there are: found by name, with the parameters each has.

use crate::binding::{Definition, RawParameter};

include!(concat!(env!("OUT_DIR"), "/controls.rs"));

/// A number of a control that can be set per connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in words.
    pub doc: &'static str,
    /// Its value unless set.
    pub default: f64,
    /// The least allowed.
    pub min: f64,
    /// The most allowed.
    pub max: f64,
    /// Values are whole multiples of this.
    pub step: f64,
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
    let name = if name == "bbr" { "bbr1" } else { name };
    CONTROLS.iter().copied().find(|control| control.name() == name)
}

impl RawParameter {
    pub(crate) fn public(&'static self) -> Parameter {
        let scale = f64::from(self.scale);
        Parameter {
            name: self.name(),
            doc: self.doc(),
            default: f64::from(self.initial) / scale,
            min: f64::from(self.least) / scale,
            max: f64::from(self.most) / scale,
            step: 1.0 / scale,
        }
    }

    /// `value` in the control's own whole numbers; none if outside the range.
    pub(crate) fn whole(&self, value: f64) -> Option<u32> {
        let scaled = (value * f64::from(self.scale)).round();
        (scaled >= f64::from(self.least) && scaled <= f64::from(self.most)).then_some(scaled as u32)
    }
}
