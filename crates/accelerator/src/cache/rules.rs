//! The rules of RFC 9111 for messages: whether a response may be stored, for how long it is fresh, how old it is.

use std::time::{Duration, SystemTime};

use tcplab_traffic::http::{Fields, Method, Request, Response};

/// Of the time since an object's last change this share, percent, is its lifetime where the server gives none (section 4.2.2).
const HEURISTIC: u32 = 10;
/// The longest such lifetime.
const MAX_HEURISTIC: Duration = Duration::from_secs(24 * 3600);

/// The value of a directive of `Cache-Control`, empty if it has none; none: it is not there.
pub(crate) fn directive<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.members("cache-control").find_map(|member| {
        let (own, value) = member.split_once('=').unwrap_or((member, ""));
        own.trim().eq_ignore_ascii_case(name).then_some(value.trim().trim_matches('"'))
    })
}

/// A directive's seconds. A value that is not a number is 0: the response is stale (section 4.2.1).
fn seconds(fields: &Fields, name: &str) -> Option<Duration> {
    let digits = directive(fields, name)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Too large a number is 2^31 (section 1.2.2).
    let seconds = if is_number { digits.parse().unwrap_or(1 << 31) } else { 0 };
    Some(Duration::from_secs(seconds))
}

fn date(fields: &Fields, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(fields.first(name)?).ok()
}

/// Whether the client wants no stored response without asking the server, at this age and with this lifetime left
/// (section 5.2.1; `Pragma`, section 5.4).
pub(crate) fn demands_validation(request: &Fields, age: Duration, left: Duration) -> bool {
    if request.first("cache-control").is_none() {
        return request.has("pragma", "no-cache");
    }
    directive(request, "no-cache").is_some()
        || seconds(request, "max-age").is_some_and(|maximum| age > maximum)
        || seconds(request, "min-fresh").is_some_and(|minimum| left < minimum)
}

/// Whether a response of the server may be stored (section 3). Only whole objects are.
pub(crate) fn may_store(request: &Request, response: &Response, lifetime: Duration) -> bool {
    let fields = &response.fields;
    let has = |name| directive(fields, name).is_some();
    let is_shared = request.fields.first("authorization").is_none()
        || has("public")
        || has("s-maxage")
        || has("must-revalidate");
    request.method == Method::Get
        && response.status == 200
        && directive(&request.fields, "no-store").is_none()
        && !has("no-store")
        && !has("private")
        && is_shared
        && !fields.has("vary", "*")
        && (!lifetime.is_zero() || has_validator(fields))
}

/// Whether the server can be asked if the response still holds.
pub(crate) fn has_validator(fields: &Fields) -> bool {
    fields.first("etag").is_some() || fields.first("last-modified").is_some()
}

/// For how long a response is fresh (section 4.2.1).
pub(crate) fn lifetime(fields: &Fields, received: SystemTime) -> Duration {
    if directive(fields, "no-cache").is_some() {
        return Duration::ZERO;
    }
    if let Some(given) = seconds(fields, "s-maxage").or_else(|| seconds(fields, "max-age")) {
        return given;
    }
    let sent = date(fields, "date").unwrap_or(received);
    if fields.first("expires").is_some() {
        return date(fields, "expires").and_then(|end| end.duration_since(sent).ok()).unwrap_or_default();
    }
    let unchanged = date(fields, "last-modified").and_then(|changed| sent.duration_since(changed).ok());
    unchanged.map_or(Duration::ZERO, |time| (time * HEURISTIC / 100).min(MAX_HEURISTIC))
}

/// How old a response was when it came (section 4.2.3), where the answer took `delay`.
pub(crate) fn initial_age(fields: &Fields, received: SystemTime, delay: Duration) -> Duration {
    let apparent = date(fields, "date").and_then(|sent| received.duration_since(sent).ok());
    // `Date` has whole seconds, so that what was sent in this second has no age yet.
    let apparent = Duration::from_secs(apparent.unwrap_or_default().as_secs());
    let given = fields.first("age").and_then(|age| age.parse().ok()).unwrap_or(0);
    apparent.max(Duration::from_secs(given) + delay)
}

/// Whether the client has what is stored (RFC 9110, section 13.2.2), so that a head will do.
pub(crate) fn is_known(request: &Fields, stored: &Fields) -> bool {
    if request.first("if-none-match").is_some() {
        let weak = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
        let own = stored.first("etag").map(weak);
        return request.members("if-none-match").any(|tag| tag == "*" || Some(weak(tag)) == own);
    }
    match (date(request, "if-modified-since"), date(stored, "last-modified").or_else(|| date(stored, "date")))
    {
        (Some(known), Some(changed)) => changed <= known,
        _ => false,
    }
}

/// The fields that are for the next hop only: those that `Connection` names, and those known to be (RFC 9110, section 7.6.1).
pub(crate) fn end_to_end(fields: &Fields) -> Fields {
    let mut kept = fields.clone();
    for name in fields.members("connection") {
        kept.remove(name);
    }
    for name in
        ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "proxy-authenticate"]
    {
        kept.remove(name);
    }
    kept
}

/// Brings a stored response's fields up to date with those of a 304 (section 3.2).
pub(crate) fn update(stored: &Fields, confirmation: &Fields) -> Fields {
    let mut updated = stored.clone();
    let confirmed = end_to_end(confirmation);
    let about_body = ["content-length", "content-encoding", "content-type", "content-range"];
    let is_updated = |name: &str| !about_body.iter().any(|one| name.eq_ignore_ascii_case(one));
    for (name, _) in confirmed.iter().filter(|(name, _)| is_updated(name)) {
        updated.remove(name);
    }
    for (name, value) in confirmed.iter().filter(|(name, _)| is_updated(name)) {
        updated.add(name, value);
    }
    // The age of what was stored is not that of what was confirmed.
    if confirmation.first("age").is_none() {
        updated.remove("age");
    }
    updated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &str) -> Fields {
        response(lines).fields
    }

    fn response(lines: &str) -> Response {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        Response::parse(text.as_bytes()).expect("sound").expect("whole").0
    }

    fn request(lines: &str) -> Request {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        Request::parse(text.as_bytes()).expect("sound").expect("whole").0
    }

    const SENT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn received() -> SystemTime {
        httpdate::parse_http_date(SENT).expect("a date") + Duration::from_millis(5300)
    }

    fn lasts(lines: &str) -> u64 {
        lifetime(&fields(lines), received()).as_secs()
    }

    #[test]
    fn the_lifetime_is_the_first_that_is_given() {
        assert_eq!(lasts("Cache-Control: max-age=60\r\nCache-Control: s-maxage=\"30\"\r\n"), 30);
        assert_eq!(lasts("Cache-Control: public, Max-Age=60\r\nExpires: 0\r\n"), 60);
        assert_eq!(lasts("Cache-Control: max-age=60, no-cache\r\n"), 0);
        assert_eq!(lasts("Cache-Control: max-age=sixty\r\n"), 0);
        assert_eq!(lasts("Cache-Control: max-age=99999999999999999999\r\n"), 1 << 31);
        assert_eq!(lasts(&format!("Date: {SENT}\r\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\r\n")), 60);
        assert_eq!(lasts(&format!("Date: {SENT}\r\nExpires: 0\r\n")), 0);
        assert_eq!(lasts(&format!("Date: {SENT}\r\nLast-Modified: Sun, 06 Nov 1994 08:39:37 GMT\r\n")), 60);
        assert_eq!(lasts("ETag: \"a\"\r\n"), 0);
    }

    #[test]
    fn the_age_is_the_larger_of_the_apparent_and_the_given_one() {
        let age = |lines: &str, delay| {
            initial_age(&fields(lines), received(), Duration::from_secs(delay)).as_secs()
        };
        assert_eq!(age(&format!("Date: {SENT}\r\n"), 1), 5);
        assert_eq!(age(&format!("Date: {SENT}\r\nAge: 9\r\n"), 1), 10);
        assert_eq!(age("", 0), 0);
    }

    #[test]
    fn what_may_not_be_shared_is_not_stored() {
        let stores = |asked: &str, answer: &str| {
            may_store(&request(asked), &response(answer), lifetime(&fields(answer), received()))
        };
        assert!(stores("", "Cache-Control: max-age=60\r\n"));
        assert!(stores("", "ETag: \"a\"\r\n"));
        assert!(!stores("", ""), "neither fresh nor ever to be confirmed");
        assert!(!stores("", "Cache-Control: max-age=60, no-store\r\n"));
        assert!(!stores("", "Cache-Control: max-age=60, private=\"x\"\r\n"));
        assert!(!stores("", "Cache-Control: max-age=60\r\nVary: *\r\n"));
        assert!(!stores("Cache-Control: no-store\r\n", "Cache-Control: max-age=60\r\n"));
        assert!(!stores("Authorization: x\r\n", "Cache-Control: max-age=60\r\n"));
        assert!(stores("Authorization: x\r\n", "Cache-Control: s-maxage=60\r\n"));
    }

    #[test]
    fn a_client_may_demand_that_the_server_is_asked() {
        let demands = |lines: &str| {
            demands_validation(&request(lines).fields, Duration::from_secs(10), Duration::from_secs(20))
        };
        assert!(!demands(""));
        assert!(demands("Cache-Control: no-cache\r\n"));
        assert!(demands("Pragma: no-cache\r\n"));
        assert!(!demands("Cache-Control: max-age=10\r\nPragma: no-cache\r\n"));
        assert!(demands("Cache-Control: max-age=9\r\n"));
        assert!(demands("Cache-Control: min-fresh=21\r\n"));
        assert!(!demands("Cache-Control: min-fresh=20\r\n"));
    }

    #[test]
    fn a_client_that_has_it_needs_no_body() {
        let stored = fields("ETag: W/\"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        let knows = |lines: &str| is_known(&request(lines).fields, &stored);
        assert!(knows("If-None-Match: \"b\", \"a\"\r\n"));
        assert!(knows("If-None-Match: *\r\n"));
        assert!(!knows(&format!("If-None-Match: \"b\"\r\nIf-Modified-Since: {SENT}\r\n")));
        assert!(knows(&format!("If-Modified-Since: {SENT}\r\n")));
        assert!(!knows("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n"));
        assert!(!knows("If-Modified-Since: yesterday\r\n"));
    }

    #[test]
    fn fields_of_one_hop_go_no_further() {
        let kept = end_to_end(&fields("Connection: X-A, close\r\nX-A: 1\r\nX-B: 2\r\nKeep-Alive: 5\r\n"));
        assert_eq!(kept.iter().map(|field| field.0).collect::<Vec<_>>(), ["X-B"]);
    }

    #[test]
    fn a_confirmation_brings_new_values_and_no_new_length() {
        let stored = fields("Content-Length: 7\r\nETag: \"a\"\r\nDate: old\r\nAge: 4\r\nX: 1\r\nX: 2\r\n");
        let updated = update(&stored, &fields("Content-Length: 0\r\nDate: new\r\nX: 3\r\n"));
        assert_eq!(updated, fields("Content-Length: 7\r\nETag: \"a\"\r\nDate: new\r\nX: 3\r\n"));
    }
}
