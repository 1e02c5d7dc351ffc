//! The objects that a server has: their sizes and their bytes follow from a seed, so that none of them is stored.

use std::sync::LazyLock;
use std::time::SystemTime;

use tcplab_plan::{Object, RESPONSE_HEAD_BYTES, Requests, Web};

use super::head::{Method, Request, Wanted, filled, wanted};

/// Bytes after which an object's bytes repeat: a prime, so that no power of two is among its periods.
const PERIOD: usize = 65_521;
/// Maximum bytes of one write.
const WRITE: usize = 128 << 10;

/// Source of every object's bytes.
static MATTER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |at: usize| ((at % PERIOD) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) as u8;
    (0..PERIOD + WRITE).map(byte).collect()
});

/// The objects of one flow's server.
#[derive(Debug)]
pub(crate) struct Objects {
    requests: Requests,
    /// Seconds for which a cache may use them.
    max_age: u64,
}

/// An answer: its head, and the part of an object that follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub head: Vec<u8>,
    pub object: u32,
    pub offset: u64,
    pub bytes: u64,
}

impl Objects {
    pub(crate) fn new(web: &Web, seed: u64, flow: &str) -> Objects {
        Objects { requests: Requests::new(web, seed, flow), max_age: web.max_age.as_ns() / 1_000_000_000 }
    }

    /// The answer to a request.
    pub(crate) fn answer(&self, request: &Request) -> Answer {
        if let Method::Other(_) = request.method {
            return refusal(405, "Method Not Allowed", "Allow: GET, HEAD\r\n", false);
        }
        let path = request.path.split('?').next().unwrap_or("");
        let number = path.strip_prefix('/').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let object =
            number.and_then(|digits| digits.parse().ok()).and_then(|number| self.requests.object(number));
        let is_head = request.method == Method::Head;
        let Some(object) = object else { return refusal(404, "Not Found", "", is_head) };
        let tag = self.tag(object);
        let common = format!(
            "ETag: {tag}\r\nCache-Control: max-age={}\r\nAccept-Ranges: bytes\r\nDate: {}\r\n",
            self.max_age,
            httpdate::fmt_http_date(SystemTime::now())
        );
        let known = |one: &str| one == "*" || one.trim_start_matches("W/") == tag;
        if request.fields.members("if-none-match").any(known) {
            return answer("304 Not Modified", &common, "", object.number, 0, 0);
        }
        let size = object.size;
        match wanted(request, size, Some(&tag)) {
            Wanted::Unsatisfiable => {
                refusal(416, "Range Not Satisfiable", &format!("Content-Range: bytes */{size}\r\n"), false)
            }
            Wanted::Whole => {
                let length = format!("Content-Length: {size}\r\n");
                let bytes = if is_head { 0 } else { size };
                answer("200 OK", &common, &length, object.number, 0, bytes)
            }
            Wanted::Part { offset, bytes } => {
                let last = offset + bytes - 1;
                let range =
                    format!("Content-Length: {bytes}\r\nContent-Range: bytes {offset}-{last}/{size}\r\n");
                answer("206 Partial Content", &common, &range, object.number, offset, bytes)
            }
        }
    }

    /// An entity tag: another flow's or run's object of this number has another one.
    fn tag(&self, object: Object) -> String {
        let mixed = self.requests.seed() ^ (u64::from(object.number) << 40) ^ object.size;
        format!("\"{:016x}\"", mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

fn answer(status: &str, common: &str, more: &str, object: u32, offset: u64, bytes: u64) -> Answer {
    let head = filled(&format!("HTTP/1.1 {status}\r\n{more}{common}"), "Server", RESPONSE_HEAD_BYTES);
    Answer { head, object, offset, bytes }
}

/// An answer without an object. Its body is the head's: it is short, and text.
pub(crate) fn refusal(status: u16, reason: &str, more: &str, is_head: bool) -> Answer {
    let body = format!("{status} {reason}\n");
    let mut head = format!(
        "HTTP/1.1 {status} {reason}\r\nDate: {}\r\nContent-Type: text/plain\r\n{more}Content-Length: {}\r\n\r\n",
        httpdate::fmt_http_date(SystemTime::now()),
        body.len()
    );
    if !is_head {
        head += &body;
    }
    Answer { head: head.into_bytes(), object: 0, offset: 0, bytes: 0 }
}

/// Bytes of an object from `offset` on, at most one write's.
pub(crate) fn matter(object: u32, offset: u64, bytes: u64) -> &'static [u8] {
    let at = (offset.wrapping_add(u64::from(object) * 7919) % PERIOD as u64) as usize;
    &MATTER[at..at + bytes.min(WRITE as u64) as usize]
}
