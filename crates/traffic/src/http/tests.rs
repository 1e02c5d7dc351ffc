//! Heads, ranges and answers, as RFC 9110 and RFC 9112 have them.

use proptest::prelude::*;
use tcplab_plan::{RESPONSE_HEAD_BYTES, Web};

use super::client::by_cache;
use super::head::{Framing, HeadError, MAX_HEAD, Method, Request, Response, Wanted, filled, wanted};
use super::objects::{Answer, Objects, matter};

fn request(text: &str) -> Request {
    let (request, length) = Request::parse(text.as_bytes()).expect("sound").expect("whole");
    assert_eq!(length, text.len());
    request
}

fn refused(text: &str) -> HeadError {
    Request::parse(text.as_bytes()).expect_err("refused")
}

fn get(path: &str, fields: &str) -> Request {
    request(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
}

#[test]
fn a_head_is_complete_with_its_empty_line() {
    let text = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n";
    for cut in 0..text.len() {
        assert_eq!(Request::parse(&text.as_bytes()[..cut]), Ok(None), "{cut}");
    }
    let one = request(text);
    assert_eq!((one.method.clone(), one.path.as_str(), one.body), (Method::Get, "/1", Framing::Length(0)));
    assert!(one.keeps_open());
}

#[test]
fn what_is_not_http_and_what_is_ambiguous_is_refused() {
    assert_eq!(refused("\u{1}\u{2}\u{3}\r\n\r\n").status().0, 400);
    assert_eq!(refused("GET / HTTP/2.0\r\n\r\n").status().0, 505);
    assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), HeadError::Host);
    assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), HeadError::Host);
    let smuggled = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
    ];
    for fields in smuggled {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(refused(&text), HeadError::Framing, "{fields}");
    }
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(MAX_HEAD));
    assert_eq!(refused(&long).status().0, 431);
    assert_eq!(refused(&format!("{long}\r\n\r\n")).status().0, 431);
}

#[test]
fn an_absolute_target_names_the_host() {
    let one = request("GET http://a.example:81/b?c HTTP/1.1\r\nHost: other\r\n\r\n");
    assert_eq!((one.host.as_str(), one.path.as_str()), ("a.example:81", "/b?c"));
    let bare = request("GET HTTP://a.example HTTP/1.1\r\nHost: other\r\n\r\n");
    assert_eq!((bare.host.as_str(), bare.path.as_str()), ("a.example", "/"));
}

#[test]
fn connections_stay_open_as_the_version_has_it() {
    assert!(!request("GET / HTTP/1.0\r\n\r\n").keeps_open());
    assert!(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keeps_open());
    assert!(!get("/", "Connection: foo, Close\r\n").keeps_open());
}

#[test]
fn the_end_of_a_response_depends_on_the_request() {
    let response = |text: &str| Response::parse(text.as_bytes()).expect("sound").expect("whole").0;
    let plain = response("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
    assert_eq!(plain.body(&Method::Get), Ok(Framing::Length(7)));
    assert_eq!(plain.body(&Method::Head), Ok(Framing::Length(0)));
    let not_modified = response("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n");
    assert_eq!(not_modified.body(&Method::Get), Ok(Framing::Length(0)));
    let chunked = response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(chunked.body(&Method::Get), Ok(Framing::Chunked));
    assert_eq!(response("HTTP/1.0 200 OK\r\n\r\n").body(&Method::Get), Ok(Framing::Close));
}

/// RFC 9110, section 14.1.2, has these of a representation of 10000 bytes.
#[test]
fn ranges_as_the_rfc_has_them() {
    let of = |range: &str| wanted(&get("/", &format!("Range: {range}\r\n")), 10_000, Some("\"t\""));
    let part = |offset, bytes| Wanted::Part { offset, bytes };
    assert_eq!(of("bytes=0-499"), part(0, 500));
    assert_eq!(of("bytes=500-999"), part(500, 500));
    assert_eq!(of("bytes=-500"), part(9500, 500));
    assert_eq!(of("bytes=9500-"), part(9500, 500));
    assert_eq!(of("bytes=9500-20000"), part(9500, 500));
    assert_eq!(of("bytes=-20000"), part(0, 10_000));
    for unsatisfiable in ["bytes=10000-", "bytes=99999999999999999999-", "bytes=-0"] {
        assert_eq!(of(unsatisfiable), Wanted::Unsatisfiable, "{unsatisfiable}");
    }
    for unheeded in ["bytes=5-4", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-0,-1", "bytes"] {
        assert_eq!(of(unheeded), Wanted::Whole, "{unheeded}");
    }
}

#[test]
fn a_range_of_another_version_is_all_of_it() {
    let of =
        |tag: &str| wanted(&get("/", &format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n")), 9, Some("\"t\""));
    assert_eq!(of("\"t\""), Wanted::Part { offset: 0, bytes: 1 });
    assert_eq!(of("\"u\""), Wanted::Whole);
    assert_eq!(of("W/\"t\""), Wanted::Whole);
}

#[test]
fn the_nearest_cache_that_did_not_pass_the_request_on_has_answered() {
    let of = |lines: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        by_cache(&Response::parse(text.as_bytes()).expect("sound").expect("whole").0.fields)
    };
    assert_eq!(of(""), None);
    assert_eq!(of("Cache-Status: a; fwd=uri-miss\r\n"), Some("miss"));
    assert_eq!(of("Cache-Status: a; hit\r\nCache-Status: b; fwd=uri-miss\r\n"), Some("hit"));
    assert_eq!(of("Cache-Status: a; hit, b; fwd=stale; fwd-status=304\r\n"), Some("revalidated"));
    assert_eq!(of("Cache-Status: a; fwd=uri-miss, b; hit; ttl=5\r\n"), Some("hit"));
}

fn objects() -> Objects {
    Objects::new(&Web { objects: 20, sizes: vec![1, 300_000], ..Web::default() }, 3, "f")
}

fn status(answer: &Answer) -> (u16, Response) {
    let (response, _) = Response::parse(&answer.head).expect("sound").expect("whole");
    (response.status, response)
}

#[test]
fn the_server_answers_as_the_method_and_the_condition_say() {
    let objects = objects();
    let (code, response) = status(&objects.answer(&get("/3", "")));
    assert_eq!(code, 200);
    let tag = response.fields.first("etag").expect("a tag").to_owned();
    let length: u64 = response.fields.first("content-length").and_then(|l| l.parse().ok()).expect("a length");
    assert_eq!(objects.answer(&get("/3", "")).bytes, length);
    let head = request("HEAD /3 HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = objects.answer(&head);
    assert_eq!((status(&answer).0, answer.bytes), (200, 0));
    assert_eq!(status(&answer).1.fields.first("content-length"), Some(length.to_string().as_str()));
    let same = objects.answer(&get("/3", &format!("If-None-Match: \"x\", {tag}\r\n")));
    assert_eq!((status(&same).0, same.bytes), (304, 0));
    let (code, range) = status(&objects.answer(&get("/3", "Range: bytes=0-0\r\n")));
    assert_eq!(
        (code, range.fields.first("content-range")),
        (206, Some(format!("bytes 0-0/{length}").as_str()))
    );
    assert_eq!(status(&objects.answer(&get("/3", "Range: bytes=300000-\r\n"))).0, 416);
    for missing in ["/20", "/", "/x", "/-1", "/99999999999"] {
        assert_eq!(status(&objects.answer(&get(missing, ""))).0, 404, "{missing}");
    }
    assert_eq!(status(&objects.answer(&request("PUT /3 HTTP/1.1\r\nHost: h\r\n\r\n"))).0, 405);
}

#[test]
fn heads_have_the_simulators_length() {
    for fields in ["", "Range: bytes=0-0\r\n", "If-None-Match: *\r\n"] {
        assert_eq!(objects().answer(&get("/3", fields)).head.len() as u64, RESPONSE_HEAD_BYTES);
    }
    assert_eq!(filled("GET /0 HTTP/1.1\r\nHost: [fd00::1]:65535\r\n", "User-Agent", 100).len(), 100);
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&bytes);
        let _ = Response::parse(&bytes);
    }

    #[test]
    fn a_part_lies_within_the_object(first in 0u64..300, last in 0u64..300, size in 0u64..200) {
        let range = format!("Range: bytes={first}-{last}\r\n");
        if let Wanted::Part { offset, bytes } = wanted(&get("/", &range), size, None) {
            prop_assert!(bytes > 0 && offset + bytes <= size && offset == first);
            prop_assert_eq!(bytes, (last + 1).min(size) - first);
        } else {
            prop_assert!(first >= size || last < first);
        }
    }

    #[test]
    fn an_objects_bytes_do_not_depend_on_how_they_are_cut(number in 0u32..1000, offset in 0u64..1_000_000, cut in 1u64..1000) {
        let whole = matter(number, offset, 2000);
        prop_assert_eq!(&whole[cut as usize..], matter(number, offset + cut, 2000 - cut));
    }
}
