//! Metadata of the control in an object file: the sections that `tcplab_cc.h` makes for this, in eBPF and native objects
//! alike. Nothing of the object runs.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};
use tcplab_control::gauge::Place;
use tcplab_control::registry::whole;
use tcplab_control::{ControlError, Gauge};

use crate::KernelccError;

/// `TL_NAME_SIZE`, `TL_UNIT_SIZE` and `TL_DOC_SIZE` of `tcplab_cc.h`.
const NAME: usize = 32;
const UNIT: usize = 16;
const DOC: usize = 160;
/// `struct tl_parameter_row`: name, description, default, min, max and scale.
const ROW: usize = NAME + DOC + 4 * 4;
/// `struct tl_gauge_row`: name, unit, description, offset, size, whether it has a sign, and scale.
const GAUGE: usize = NAME + UNIT + DOC + 4 * 4;

/// The operations of `struct tl_operations`, in its order: as Linux calls them.
const OPERATIONS: [&str; 11] = [
    "init",
    "ssthresh",
    "cong_avoid",
    "set_state",
    "cwnd_event",
    "in_ack_event",
    "pkts_acked",
    "min_tso_segs",
    "cong_control",
    "undo_cwnd",
    "sndbuf_expand",
];

/// A control as its object describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ElfMetadata {
    /// Name.
    pub name: String,
    /// Names of its phases, by number.
    pub phases: Vec<String>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its gauges.
    pub gauges: Vec<Gauge>,
    /// Its operations, as Linux calls them; none where the object does not say (eBPF, where the kernel looks itself).
    pub operations: Option<Vec<&'static str>>,
}

/// A number that can be set, in the control's own whole numbers: a user's value times `scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Description.
    pub doc: String,
    /// Its value unless set.
    pub initial: u32,
    /// The minimum.
    pub min: u32,
    /// The maximum.
    pub max: u32,
    /// Factor by which a user's value is multiplied.
    pub scale: u32,
}

impl ElfMetadata {
    /// Reads the description in an object; what it is called in errors is `file`.
    pub fn read(object: &[u8], file: &str) -> Result<ElfMetadata, KernelccError> {
        let malformed = |what| KernelccError::Malformed { name: file.to_owned(), what };
        let elf = ElfFile64::<Endianness>::parse(object).map_err(|_| malformed("ELF header"))?;
        let section = |name| elf.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or(&[]);
        let name = text(section("tcplab.name"));
        if name.is_empty() {
            return Err(malformed("description: it was not made with this version of tcplab_cc.h"));
        }
        let phases = section("tcplab.phases").chunks_exact(NAME).map(text).collect();
        let parameters = section("tcplab.parameters").chunks_exact(ROW).map(Parameter::read).collect();
        let gauges = section("tcplab.gauges").chunks_exact(GAUGE).map(gauge).collect();
        let (flags, _) = section("tcplab.operations").as_chunks::<8>();
        let has_operations = flags.len() >= OPERATIONS.len();
        let operations = OPERATIONS.iter().zip(flags).filter(|(_, flag)| **flag != [0; 8]);
        let operations = has_operations.then(|| operations.map(|(name, _)| *name).collect());
        Ok(ElfMetadata { name, phases, parameters, gauges, operations })
    }

    /// Why it cannot be called, if the object has its operations; none if it can. Linux refuses the
    /// same (`tcp_validate_congestion_control`).
    pub fn fault(&self) -> Option<&'static str> {
        let operations = self.operations.as_ref()?;
        let has = |name| operations.contains(&name);
        match () {
            () if !has("ssthresh") => Some("it has no SSTHRESH among its operations"),
            () if !has("undo_cwnd") => Some("it has no UNDO_CWND among its operations"),
            () if !has("cong_avoid") && !has("cong_control") => {
                Some("it has neither CONG_AVOID nor CONG_CONTROL among its operations")
            }
            () => None,
        }
    }

    /// Every parameter in the control's own numbers, with those of `params` instead of their defaults.
    pub(crate) fn set<'a>(
        &self,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Vec<u32>, ControlError> {
        let mut values: Vec<u32> = self.parameters.iter().map(|row| row.initial).collect();
        for (name, value) in params {
            let control = self.name.clone();
            let Some(index) = self.parameters.iter().position(|row| row.name == name) else {
                return Err(ControlError::UnknownParameter { control, name: name.to_owned() });
            };
            let row = &self.parameters[index];
            values[index] = whole(value, row.min, row.max, row.scale).ok_or_else(|| {
                let [min, max] = [row.min, row.max].map(|edge| f64::from(edge) / f64::from(row.scale));
                ControlError::OutOfRange { control, name: name.to_owned(), value, min, max }
            })?;
        }
        Ok(values)
    }
}

impl Parameter {
    fn read(row: &[u8]) -> Parameter {
        let (words, _) = row[NAME + DOC..].as_chunks::<4>();
        let word = |index: usize| u32::from_ne_bytes(words[index]);
        Parameter {
            name: text(&row[..NAME]),
            doc: text(&row[NAME..NAME + DOC]),
            initial: word(0),
            min: word(1),
            max: word(2),
            scale: word(3).max(1),
        }
    }
}

fn gauge(row: &[u8]) -> Gauge {
    let (texts, numbers) = row.split_at(NAME + UNIT + DOC);
    let (words, _) = numbers.as_chunks::<4>();
    let word = |index: usize| u32::from_ne_bytes(words[index]);
    Gauge {
        name: text(&texts[..NAME]),
        unit: text(&texts[NAME..NAME + UNIT]),
        doc: text(&texts[NAME + UNIT..]),
        place: Place { offset: word(0), size: word(1), signed: word(2) != 0, scale: word(3).max(1) },
    }
}

/// A C string in a field of its own; what would control a terminal is replaced.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = String::from_utf8_lossy(&field[..end]);
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects;

    #[test]
    fn an_object_says_what_the_native_control_says() {
        for name in objects::names() {
            let metadata = ElfMetadata::read(objects::find(name).unwrap(), name).unwrap();
            let native = tcplab_control::Table::find(name).unwrap();
            assert_eq!(metadata.name, native.name());
            assert_eq!(metadata.phases, *native.phases());
            let edges = |row: &Parameter| {
                let numbers = [row.initial, row.min, row.max];
                (row.name.clone(), numbers.map(|number| f64::from(number) / f64::from(row.scale)))
            };
            let declared: Vec<_> = metadata.parameters.iter().map(edges).collect();
            let known: Vec<_> = native
                .parameters()
                .map(|row| (row.name.to_owned(), [row.default, row.min, row.max]))
                .collect();
            assert_eq!(declared, known, "{name}");
            assert_eq!(metadata.gauges, native.gauges().collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn other_files_than_objects_are_rejected() {
        let error = ElfMetadata::read(b"int main;", "mine.o").unwrap_err();
        assert!(error.to_string().contains("mine.o"), "{error}");
    }

    #[test]
    fn parameters_are_checked_against_their_ranges() {
        let Ok(object) = objects::find("cubic") else { return eprintln!("skipped: no objects") };
        let metadata = ElfMetadata::read(object, "cubic").unwrap();
        assert_eq!(metadata.set([("beta", 0.5)]).unwrap()[0], 512);
        assert!(matches!(metadata.set([("bta", 0.5)]), Err(ControlError::UnknownParameter { .. })));
        let error = metadata.set([("beta", 1.8)]).unwrap_err().to_string();
        assert!(error.contains("1.8"), "{error}");
    }
}
