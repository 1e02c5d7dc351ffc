//! Heads of messages: the request line or status line, and the fields (RFC 9112, sections 2 to 6).

use std::fmt::Write;

/// Maximum bytes of a head. Servers commonly take 8 to 16 KiB.
pub const MAX_HEAD: usize = 16 << 10;
/// Maximum number of fields of a head.
const MAX_FIELDS: usize = 100;

/// Why a head cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It is not HTTP.
    #[error("not HTTP/1.x: {0}")]
    Malformed(httparse::Error),
    /// It does not end within the bytes that are allowed, or has too many fields.
    #[error("a head of more than {MAX_HEAD} bytes or {MAX_FIELDS} fields")]
    TooLong,
    /// Where the message ends is ambiguous (RFC 9112, section 6.3), as request smuggling needs it.
    #[error("contradictory fields of the message's length")]
    Framing,
    /// `Host` is missing, or stands twice (RFC 9112, section 3.2).
    #[error("no Host field, or more than one")]
    Host,
}

impl HeadError {
    /// The status and reason of a server's answer to it.
    pub fn status(self) -> (u16, &'static str) {
        match self {
            HeadError::TooLong => (431, "Request Header Fields Too Large"),
            HeadError::Malformed(httparse::Error::Version) => (505, "HTTP Version Not Supported"),
            _ => (400, "Bad Request"),
        }
    }
}

/// The fields of a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    fn of(parsed: &[httparse::Header<'_>]) -> Fields {
        Fields(parsed.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect())
    }

    /// Each name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The values of a field, as text; those that are not are left out.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        named.filter_map(|(_, value)| std::str::from_utf8(value).ok()).map(str::trim)
    }

    /// The first value of a field.
    pub fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// The members of a field that is a list (RFC 9110, section 5.6.1).
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.all(name).flat_map(|value| value.split(',')).map(str::trim).filter(|member| !member.is_empty())
    }

    /// Whether a list has a member, whatever its case.
    pub fn has(&self, name: &str, member: &str) -> bool {
        self.members(name).any(|one| one.eq_ignore_ascii_case(member))
    }

    /// Sets a field to one value.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.remove(name);
        self.0.push((name.to_owned(), value.into()));
    }

    /// Adds a field after those there are.
    pub fn add(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    }

    /// The bytes of a head with this first line.
    pub fn after(&self, first_line: &str) -> Vec<u8> {
        let mut head = format!("{first_line}\r\n").into_bytes();
        for (name, value) in self.iter() {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// The length that `Content-Length` gives. Several that agree are one (RFC 9112, section 6.3).
    fn length(&self) -> Result<Option<u64>, HeadError> {
        let mut length = None;
        for member in self.members("content-length") {
            let digits = !member.is_empty() && member.bytes().all(|byte| byte.is_ascii_digit());
            let one = member.parse().ok().filter(|_| digits).ok_or(HeadError::Framing)?;
            if length.is_some_and(|other: u64| other != one) {
                return Err(HeadError::Framing);
            }
            length = Some(one);
        }
        Ok(length)
    }

    fn chunked(&self) -> bool {
        self.members("transfer-encoding").last().is_some_and(|last| last.eq_ignore_ascii_case("chunked"))
    }
}

/// The method of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// An object.
    Get,
    /// Its head only.
    Head,
    /// Something else.
    Other(String),
}

impl Method {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Other(name) => name,
        }
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request's method.
    pub method: Method,
    /// The host that is asked: of an absolute target, or of `Host`.
    pub host: String,
    /// Path and query: the target in origin-form.
    pub path: String,
    /// Whether it is HTTP/1.1, and not 1.0.
    pub is_1_1: bool,
    /// Its fields.
    pub fields: Fields,
    /// Its body.
    pub body: Framing,
}

/// How long a message's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks say (RFC 9112, section 7.1).
    Chunked,
    /// It ends with the connection.
    Close,
}

impl Request {
    /// The head at the beginning of `bytes`, and its length; none: it goes on.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        let Some(length) = complete(parsed.parse(bytes), bytes)? else { return Ok(None) };
        let fields = Fields::of(parsed.headers);
        let is_1_1 = parsed.version == Some(1);
        let hosts = fields.all("host").count();
        if hosts > 1 || (hosts == 0 && is_1_1) {
            return Err(HeadError::Host);
        }
        let target = parsed.path.unwrap_or("/");
        let (host, path) = origin(target, fields.first("host").unwrap_or(""));
        let body = match (fields.length()?, fields.first("transfer-encoding").is_some()) {
            (Some(_), true) => return Err(HeadError::Framing),
            (None, true) if !fields.chunked() => return Err(HeadError::Framing),
            (None, true) => Framing::Chunked,
            (length, false) => Framing::Length(length.unwrap_or(0)),
        };
        let method = match parsed.method.unwrap_or("") {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            other => Method::Other(other.to_owned()),
        };
        Ok(Some((Request { method, host, path, is_1_1, fields, body }, length)))
    }

    /// Whether the connection stays open after it (RFC 9112, section 9.3).
    pub fn keeps_open(&self) -> bool {
        stays_open(&self.fields, self.is_1_1)
    }
}

/// Host and path of a target in origin-form or in absolute-form (RFC 9112, section 3.2).
fn origin(target: &str, host: &str) -> (String, String) {
    match target.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("http://") => {
            let rest = &target[7..];
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            (authority.to_owned(), path)
        }
        _ => (host.to_owned(), target.to_owned()),
    }
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its meaning, for people.
    pub reason: String,
    /// Whether it is HTTP/1.1, and not 1.0.
    pub is_1_1: bool,
    /// Its fields.
    pub fields: Fields,
}

impl Response {
    /// The head at the beginning of `bytes`, and its length; none: it goes on.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Response, usize)>, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut fields);
        let Some(length) = complete(parsed.parse(bytes), bytes)? else { return Ok(None) };
        let response = Response {
            status: parsed.code.unwrap_or(0),
            reason: parsed.reason.unwrap_or("").to_owned(),
            is_1_1: parsed.version == Some(1),
            fields: Fields::of(parsed.headers),
        };
        Ok(Some((response, length)))
    }

    /// How long its body is, as the answer to a request of `method` (RFC 9112, section 6.3).
    pub fn body(&self, method: &Method) -> Result<Framing, HeadError> {
        if *method == Method::Head || self.status < 200 || matches!(self.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        if self.fields.first("transfer-encoding").is_some() {
            return Ok(if self.fields.chunked() { Framing::Chunked } else { Framing::Close });
        }
        Ok(self.fields.length()?.map_or(Framing::Close, Framing::Length))
    }

    /// Whether the connection stays open after it.
    pub fn keeps_open(&self) -> bool {
        stays_open(&self.fields, self.is_1_1)
    }

    /// Its bytes, of HTTP/1.1.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.fields.after(&format!("HTTP/1.1 {} {}", self.status, self.reason))
    }
}

fn stays_open(fields: &Fields, is_1_1: bool) -> bool {
    if is_1_1 { !fields.has("connection", "close") } else { fields.has("connection", "keep-alive") }
}

fn complete(
    parsed: Result<httparse::Status<usize>, httparse::Error>,
    bytes: &[u8],
) -> Result<Option<usize>, HeadError> {
    match parsed {
        // Whether it came at once or in pieces.
        Ok(httparse::Status::Complete(length)) if length > MAX_HEAD => Err(HeadError::TooLong),
        Ok(httparse::Status::Complete(length)) => Ok(Some(length)),
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => Err(HeadError::TooLong),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(HeadError::TooLong),
        Err(error) => Err(HeadError::Malformed(error)),
    }
}

/// The range of an object that is wanted (RFC 9110, section 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// So many bytes from an offset.
    Part {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A range that it does not have.
    Unsatisfiable,
}

/// The range that `request` wants of an object of `size` bytes whose entity tag is `tag`.
///
/// Of several ranges none is heeded, as the RFC allows; nor is one whose `If-Range` names another version.
pub fn wanted(request: &Request, size: u64, tag: Option<&str>) -> Wanted {
    let Some(ranges) = request.fields.first("range").filter(|_| request.method == Method::Get) else {
        return Wanted::Whole;
    };
    if let Some(version) = request.fields.first("if-range")
        && (tag != Some(version) || version.starts_with("W/"))
    {
        return Wanted::Whole;
    }
    range(ranges, size).unwrap_or(Wanted::Whole)
}

/// None where the field is malformed, or has another unit or several ranges: then it is as if it were not there.
fn range(field: &str, size: u64) -> Option<Wanted> {
    let (unit, ranges) = field.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = ranges.trim().split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        match text.trim() {
            "" => Some(None),
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Some(text.parse().unwrap_or(u64::MAX)))
            }
            _ => None,
        }
    };
    let (offset, end) = match (number(first)?, number(last)?) {
        (None, None) => return None,
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), last) => (first, last.map_or(size, |last| last.saturating_add(1).min(size))),
        (None, Some(0)) => return Some(Wanted::Unsatisfiable),
        (None, Some(suffix)) => (size.saturating_sub(suffix), size),
    };
    Some(if offset >= size { Wanted::Unsatisfiable } else { Wanted::Part { offset, bytes: end - offset } })
}

/// A head of exactly `total` bytes, where that is possible: `lines`, then the field `name`, whose value is filled up.
pub(crate) fn filled(lines: &str, name: &str, total: u64) -> Vec<u8> {
    let mut head = format!("{lines}{name}: tcplab/1");
    let missing = (total as usize).saturating_sub(head.len() + "\r\n\r\n".len());
    let _ = write!(head, "{:0<missing$}\r\n\r\n", "");
    head.into_bytes()
}
