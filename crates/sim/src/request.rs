//! Request and response over one connection.

use tcplab_tables::{EchoRow, Symbol};
use tcplab_tcp::Connection;
use tcplab_units::{Span, Time};

use crate::application::{Application, Context};
use crate::tcp_stream::{CLIENT, SERVER};

/// The client that asks and the server that answers.
#[derive(Debug)]
pub(crate) struct Request {
    request: u64,
    response: u64,
    think: Span,
    left: Option<u64>,
    stop: Time,
    established: bool,
    /// When the present request was issued; none: no answer is awaited.
    issued: Option<Time>,
    asked: u64,
    answered: u64,
    stopped: bool,
}

/// A finished exchange.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    size: u64,
    iteration: u64,
    issued: Time,
    /// When the client wants to be woken next.
    next: Time,
}

impl Exchange {
    /// Its row in the table of echoes.
    fn row(&self, flow: Symbol, client: u64, now: Time) -> EchoRow {
        EchoRow {
            flow,
            client,
            size: self.size,
            iteration: Some(self.iteration),
            time: Some(self.issued.as_ns()),
            rtt: now.since(self.issued).as_ns(),
            count: 1,
        }
    }
}

impl Request {
    /// Requests of `request` bytes, answered by `response` bytes, each `think` after the last answer; up to
    /// `count` of them and `stop`.
    pub(crate) fn new(request: u64, response: u64, think: Span, count: Option<u64>, stop: Time) -> Request {
        Request {
            request,
            response,
            think,
            left: count,
            stop,
            established: false,
            issued: None,
            asked: 0,
            answered: 0,
            stopped: false,
        }
    }

    fn ask_or_stop(&mut self, client: &mut Connection, now: Time) {
        if self.stopped {
            return;
        }
        if now >= self.stop || self.left == Some(0) {
            self.stopped = true;
            return client.close(now);
        }
        self.issued = Some(now);
        self.asked += 1;
        client.write(self.request, now);
    }

    /// Data arrived at the server; whether it completed a request, which is answered at once.
    fn serve(&mut self, server: &mut Connection, now: Time) -> bool {
        let complete = server.bytes_received() / self.request;
        if complete == self.answered {
            return false;
        }
        server.write((complete - self.answered) * self.response, now);
        self.answered = complete;
        true
    }

    /// Data arrived at the client; the exchange, if it is thereby finished.
    fn response(&mut self, client: &mut Connection, now: Time) -> Option<Exchange> {
        let issued = self.issued?;
        if client.bytes_received() < self.asked * self.response {
            return None;
        }
        self.issued = None;
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        let mut next = Time::NEVER;
        if self.left == Some(0) || now >= self.stop || self.think == Span::ZERO {
            self.ask_or_stop(client, now);
        } else {
            next = (now + self.think).min(self.stop);
        }
        Some(Exchange {
            size: self.request,
            iteration: self.asked - 1 - u64::from(self.issued.is_some()),
            issued,
            next,
        })
    }
}

impl Application for Request {
    /// The start, a thought is over, or it is time to stop.
    fn on_timer(&mut self, client: &mut Connection, context: &mut Context) {
        // While an answer or the handshake is awaited, what follows is decided when it has come.
        if self.issued.is_none() && self.established {
            self.ask_or_stop(client, context.now());
        }
        context.wake_at(Time::NEVER);
    }

    fn on_established(&mut self, client: &mut Connection, context: &mut Context) -> bool {
        self.established = true;
        self.ask_or_stop(client, context.now());
        true
    }

    fn on_data(&mut self, end: usize, connection: &mut Connection, context: &mut Context) -> bool {
        let now = context.now();
        if end == SERVER {
            return self.serve(connection, now);
        }
        let Some(exchange) = self.response(connection, now) else { return false };
        context.wake_at(exchange.next);
        let ((flow, client), (echoes, _)) = context.echoes();
        echoes.push(exchange.row(flow, client, now));
        true
    }

    fn complete(&self, _received: u64, end: Time, ended: bool) -> bool {
        match self.left {
            Some(left) => left == 0,
            None if self.stop == Time::NEVER => ended,
            None => end >= self.stop,
        }
    }

    fn data_end(&self) -> usize {
        if self.response > self.request { SERVER } else { CLIENT }
    }
}
