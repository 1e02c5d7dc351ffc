//! Where dissectors write what they find.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A field of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// 0: a header; deeper: part of the nearest field above that is less deep.
    pub depth: u8,
    /// First byte, counted from the packet's first.
    pub offset: usize,
    /// Bytes. Bit fields cover the bytes they lie in. May reach beyond what was captured.
    pub len: usize,
    /// Name.
    pub name: &'static str,
    /// Its value; empty for a field whose parts say it all.
    pub value: String,
}

/// Where a packet comes from or goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Nothing says.
    #[default]
    Unknown,
    /// A link-layer address.
    Mac([u8; 6]),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
}

impl Place {
    /// The IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match *self {
            Place::V4(address) => Some(address.into()),
            Place::V6(address) => Some(address.into()),
            Place::Unknown | Place::Mac(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Unknown => f.pad(""),
            Place::Mac(mac) => Mac(mac).fmt(f),
            Place::V4(address) => address.fmt(f),
            Place::V6(address) => address.fmt(f),
        }
    }
}

/// A link-layer address, in hexadecimal.
pub(super) struct Mac<'a>(pub(super) &'a [u8]);

impl fmt::Display for Mac<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A packet in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The innermost protocol known.
    pub protocol: &'static str,
    /// Who sent it, by the innermost address known.
    pub source: Place,
    /// Whom it is for.
    pub destination: Place,
    /// The number of the IP packet's payload's protocol.
    pub ip_protocol: Option<u8>,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// A remark about it.
    pub info: String,
}

/// The output of dissectors: fields if they are wanted, and the summary always.
#[derive(Debug, Default)]
pub(super) struct Tree {
    fields: Option<Vec<Field>>,
    depth: u8,
    pub(super) summary: Summary,
}

impl Tree {
    /// Forgets the packet before.
    pub(super) fn begin(&mut self, wanted: bool) {
        self.fields = wanted.then(Vec::new);
        self.depth = 0;
        self.summary.protocol = "";
        self.summary.source = Place::Unknown;
        self.summary.destination = Place::Unknown;
        self.summary.ip_protocol = None;
        self.summary.ports = None;
        self.summary.info.clear();
    }

    /// The fields written.
    pub(super) fn take(&mut self) -> Vec<Field> {
        self.fields.take().unwrap_or_default()
    }

    /// A field with a value.
    pub(super) fn field<T: fmt::Display>(
        &mut self,
        name: &'static str,
        offset: usize,
        len: usize,
        value: impl FnOnce() -> T,
    ) {
        if let Some(fields) = &mut self.fields {
            fields.push(Field { depth: self.depth, offset, len, name, value: value().to_string() });
        }
    }

    /// All fields until [`Tree::up`] are part of the field before.
    pub(super) fn down(&mut self) {
        self.depth = self.depth.saturating_add(1);
    }

    /// Ends what [`Tree::down`] began.
    pub(super) fn up(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Says in field and summary that a packet ends where its header should go on.
    pub(super) fn cut(&mut self, what: &'static str, at: usize, have: usize) {
        self.field(what, at, have.saturating_sub(at), || {
            format!("cut off: only {} bytes of it were captured", have.saturating_sub(at))
        });
        if self.summary.protocol.is_empty() {
            self.summary.protocol = what;
        }
        if !self.summary.info.is_empty() {
            self.summary.info.push_str(", ");
        }
        self.summary.info.push_str(what);
        self.summary.info.push_str(" header cut off");
    }

    /// The protocol and, in the summary's line, what it says.
    pub(super) fn say(&mut self, protocol: &'static str, info: fmt::Arguments<'_>) {
        self.summary.protocol = protocol;
        self.add(info);
    }

    /// More for the summary's line.
    pub(super) fn add(&mut self, info: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.summary.info, info);
    }
}
