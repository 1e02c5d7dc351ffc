//! Commands that a client of a service may send to its agent. Each command is read here before the agent sees it; what is
//! not known to be harmless is refused.
//!
//! A client could otherwise read and write files, run programs, and have traffic sent to whom it likes. So nothing is
//! sent but to the address that the client itself was reached at, and to networks that the service's owner has named.
//! TCP's handshake and TLS have proved the client's address to be its own.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tcplab_plan::Traffic;
use tcplab_units::Rate;

use super::network::Network;
use super::ports::Lease;

/// The shortest interval at which a client may have anything sampled, ns.
const SAMPLING: u64 = 1_000_000;
/// Bytes of an echo request besides its payload: the headers of IPv4 and ICMP.
const PING_HEADERS: u64 = 28;

/// The limits of every client.
#[derive(Clone, Debug, Deserialize)]
pub struct Limits {
    /// Longest run, ns.
    pub duration: u64,
    /// bit/s that one flow may send from here; none: as fast as it can.
    pub rate: Option<u64>,
    /// Streams of all flows of a run together.
    pub streams: u64,
    /// Whom else clients may have traffic sent to.
    #[serde(default)]
    pub targets: Vec<Network>,
}

/// One client's commands.
#[derive(Debug)]
pub struct Policy<'a, 'p> {
    limits: &'a Limits,
    /// The client's address.
    peer: IpAddr,
    /// This host's address, at which the client reached it.
    reached: IpAddr,
    streams: u64,
    /// Ports at which its flows arrive; none: those that the kernel chooses.
    ports: Option<&'a mut Lease<'p>>,
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The command's number.
    pub id: Option<u64>,
    /// Why.
    pub message: String,
}

impl<'a, 'p> Policy<'a, 'p> {
    /// Of a client at `peer` that reached this host at `reached`.
    pub fn new(
        limits: &'a Limits,
        peer: IpAddr,
        reached: IpAddr,
        ports: Option<&'a mut Lease<'p>>,
    ) -> Policy<'a, 'p> {
        Policy { limits, peer: peer.to_canonical(), reached: reached.to_canonical(), streams: 0, ports }
    }

    /// The line that the agent is given in place of a client's.
    pub fn admit(&mut self, line: &[u8]) -> Result<Vec<u8>, Refusal> {
        let Ok(Value::Object(command)) = serde_json::from_slice(line) else {
            return Err(Refusal { id: None, message: "a command is one JSON object a line".to_owned() });
        };
        let id = command.get("id").and_then(Value::as_u64);
        let mut admitted = self.command(&command).map_err(|message| Refusal { id, message })?;
        admitted["id"] = json!(id);
        let mut line = admitted.to_string().into_bytes();
        line.push(b'\n');
        Ok(line)
    }

    /// The command with nothing in it but what is known and allowed.
    fn command(&mut self, command: &Map<String, Value>) -> Result<Value, String> {
        let name = command.get("do").and_then(Value::as_str).ok_or("a command says what to `do`")?;
        Ok(match name {
            "stop" | "clock" => json!({"do": name}),
            "host" => json!({"do": name, "sysctls": sysctls(command.get("sysctls"))?}),
            "configure" => {
                self.streams = 0;
                json!({"do": name, "node": word(command, "node")?})
            }
            "probe" => json!({
                "do": name,
                "sockets": interval(command, "sockets")?,
                "hosts": interval(command, "hosts")?,
                "machine": command.get("machine").and_then(Value::as_bool).unwrap_or(false),
            }),
            "reflect" => json!({
                "do": name,
                "address": self.reached,
                "ports": self.lent(1)?,
                "token": number(command, "token")?,
                "from": self.peer_of(command)?,
            }),
            "path" => json!({
                "do": name,
                "address": self.target(command)?,
                "port": number(command, "port")?,
                "token": number(command, "token")?,
            }),
            "flow" => self.flow(command)?,
            "start" => {
                let duration = number(command, "duration")?;
                if duration > self.limits.duration {
                    let maximum = self.limits.duration as f64 / 1e9;
                    return Err(format!("a run lasts {maximum} s at most on this service"));
                }
                json!({"do": name, "at": number(command, "at")?, "duration": duration})
            }
            other => return Err(format!("this service does not allow {other:?}")),
        })
    }

    fn flow(&mut self, command: &Map<String, Value>) -> Result<Value, String> {
        let role = word(command, "role")?;
        let flow = command.get("flow").and_then(Value::as_object).ok_or("a flow is not described")?;
        if command.get("generator").is_some_and(|generator| !generator.is_null()) {
            return Err("this service runs no other programs".to_owned());
        }
        let streams =
            flow.get("streams").map_or(Some(1), Value::as_u64).ok_or("`streams` is not a number")?;
        self.streams = self.streams.saturating_add(streams.max(1));
        if self.streams > self.limits.streams {
            return Err(format!("a run has {} streams at most on this service", self.limits.streams));
        }
        let (address, ports) = match role {
            "server" if command.get("ports").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
                (self.reached, json!(self.lent(streams.max(1))?))
            }
            "server" => return Err("this service chooses the ports itself".to_owned()),
            "client" => (self.target(command)?, command.get("ports").cloned().unwrap_or_default()),
            _ => return Err("a flow has a `role`: server or client".to_owned()),
        };
        let rate = self.rate_of_each(command, flow, role, streams.max(1))?;
        Ok(json!({
            "do": "flow",
            "role": role,
            "address": address,
            "ports": ports,
            "sample": interval(command, "sample")?,
            "seed": command.get("seed").and_then(Value::as_u64).unwrap_or(0),
            "reverse": command.get("reverse").and_then(Value::as_bool).unwrap_or(false),
            "endless": command.get("endless").and_then(Value::as_bool).unwrap_or(false),
            "max_pacing_rate": rate,
            "flow": flow,
        }))
    }

    /// So many ports to listen on; empty: any.
    fn lent(&mut self, count: u64) -> Result<Vec<u16>, String> {
        let Some(lease) = &mut self.ports else { return Ok(Vec::new()) };
        lease.take(count as usize).ok_or_else(|| "all of this service's ports are in use".to_owned())
    }

    /// Bound of the rate of each TCP stream that is sent from here; none: there is none. Datagrams beyond it are
    /// refused.
    fn rate_of_each(
        &self,
        command: &Map<String, Value>,
        flow: &Map<String, Value>,
        role: &str,
        streams: u64,
    ) -> Result<Option<u64>, String> {
        let asked = command.get("max_pacing_rate").and_then(Value::as_u64);
        let Some(maximum) = self.limits.rate else { return Ok(asked) };
        let each = (maximum / streams).max(1);
        let kind = flow.get("kind").and_then(Value::as_str);
        let traits = Traffic::KINDS.iter().find(|traits| kind == Some(traits.name));
        if role == "client" && traits.is_none_or(|traits| !traits.connected) {
            let has_rate = traits.is_some_and(|traits| traits.bulk);
            let rate = if has_rate { number(flow, "rate")? } else { rate_of_pings(flow)? };
            if rate > each {
                let maximum =
                    Rate::from_bits_per_sec(maximum).map_or("nothing".to_owned(), |rate| rate.to_string());
                return Err(format!("a flow sends {maximum} at most from this service"));
            }
            return Ok(asked);
        }
        Ok(Some(asked.map_or(each, |asked| asked.min(each))))
    }

    /// Whom traffic goes to.
    fn target(&self, command: &Map<String, Value>) -> Result<IpAddr, String> {
        let text = word(command, "address")?;
        let address: IpAddr = text.parse().map_err(|_| format!("{text:?} is not an address"))?;
        let address = address.to_canonical();
        let known =
            address == self.peer || self.limits.targets.iter().any(|network| network.contains(address));
        if known {
            Ok(address)
        } else {
            Err(format!("this service sends to {} alone, at which you reached it", self.peer))
        }
    }

    /// Whose questions are answered.
    fn peer_of(&self, command: &Map<String, Value>) -> Result<IpAddr, String> {
        if command.get("from").is_none_or(Value::is_null) {
            return Ok(self.peer);
        }
        let mut asked = Map::new();
        asked.insert("address".to_owned(), command["from"].clone());
        self.target(&asked)
    }
}

/// Kernel settings of the network, and no other file.
fn sysctls(asked: Option<&Value>) -> Result<Vec<&str>, String> {
    let all = asked.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let named = |setting: &str| {
        setting.starts_with("net.")
            && setting.split('.').all(|part| {
                !part.is_empty()
                    && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
            })
    };
    all.iter()
        .map(|setting| setting.as_str().filter(|setting| named(setting)))
        .map(|setting| setting.ok_or_else(|| "settings that can be asked for begin with `net.`".to_owned()))
        .collect()
}

/// bit/s of one stream.
fn rate_of_pings(flow: &Map<String, Value>) -> Result<u64, String> {
    let (payload, interval) = (number(flow, "payload")?, number(flow, "interval")?);
    let bits = u128::from(payload.saturating_add(PING_HEADERS)) * 8;
    Ok(u64::try_from(bits * 1_000_000_000 / u128::from(interval.max(1))).unwrap_or(u64::MAX))
}

/// An interval of sampling, or none.
fn interval(command: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    if command.get(key).is_none_or(Value::is_null) {
        return Ok(None);
    }
    let interval = number(command, key)?;
    if interval < SAMPLING {
        return Err("intervals of samples are 1 ms at least on this service".to_owned());
    }
    Ok(Some(interval))
}

fn word<'c>(command: &'c Map<String, Value>, key: &str) -> Result<&'c str, String> {
    command.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing"))
}

fn number(command: &Map<String, Value>, key: &str) -> Result<u64, String> {
    command.get(key).and_then(Value::as_u64).ok_or_else(|| format!("`{key}` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Request;

    const LIMITS: Limits =
        Limits { duration: 60_000_000_000, rate: Some(1_000_000_000), streams: 8, targets: Vec::new() };

    fn admit(limits: &Limits, command: &Value) -> Result<Value, String> {
        let mut policy = Policy::new(limits, [192, 0, 2, 7].into(), [192, 0, 2, 1].into(), None);
        let line = policy.admit(command.to_string().as_bytes()).map_err(|refusal| refusal.message)?;
        Ok(serde_json::from_slice(&line).expect("an object"))
    }

    #[test]
    fn nothing_is_written_read_or_run_on_the_host() {
        let admitted = admit(&LIMITS, &json!({"do": "configure", "node": "a", "dir": "/etc", "cpus": [0]}));
        assert_eq!(admitted, Ok(json!({"do": "configure", "node": "a", "id": null})));
        for command in [
            json!({"do": "accelerate", "accelerator": {}}),
            json!({"do": "capture", "what": "full"}),
            json!({"do": "host", "sysctls": [".etc.passwd"]}),
            json!({"do": "host", "sysctls": ["net/../../../etc/passwd"]}),
            json!({"do": "host", "sysctls": ["net..ipv4"]}),
            json!({"do": "flow", "role": "server", "generator": "iperf3", "flow": {}}),
            json!({"do": "flow", "role": "server", "ports": [22], "flow": {}}),
            json!({"do": "start", "at": 0, "duration": 61_000_000_000_u64}),
        ] {
            assert!(admit(&LIMITS, &command).is_err(), "{command}");
        }
        let probe = json!({"do": "probe", "all_sockets": true, "processes": {"x": 1}, "sockets": SAMPLING});
        let admitted = admit(&LIMITS, &probe).expect("sampling is allowed");
        assert_eq!(
            admitted,
            json!({"do": "probe", "sockets": SAMPLING, "hosts": null, "machine": false, "id": null})
        );
    }

    #[test]
    fn samples_are_not_so_dense_that_they_fill_the_memory() {
        let tcp =
            |sample: u64| json!({"do": "flow", "role": "server", "sample": sample, "flow": {"kind": "tcp"}});
        assert!(admit(&LIMITS, &tcp(SAMPLING)).is_ok());
        for command in
            [tcp(1), json!({"do": "probe", "sockets": 1}), json!({"do": "probe", "hosts": SAMPLING - 1})]
        {
            assert!(admit(&LIMITS, &command).is_err(), "{command}");
        }
    }

    #[test]
    fn traffic_goes_to_the_client_and_to_named_networks_alone() {
        let to = |address: &str| json!({"do": "flow", "role": "client", "address": address, "ports": [5], "flow": {"kind": "tcp"}});
        assert!(admit(&LIMITS, &to("192.0.2.7")).is_ok());
        assert!(admit(&LIMITS, &to("::ffff:192.0.2.7")).is_ok());
        assert!(admit(&LIMITS, &to("192.0.2.8")).is_err());
        assert!(
            admit(&LIMITS, &json!({"do": "path", "address": "192.0.2.8", "port": 1, "token": 1})).is_err()
        );
        let from = admit(&LIMITS, &json!({"do": "reflect", "address": "0.0.0.0", "token": 1}))
            .expect("it is allowed");
        assert_eq!((&from["address"], &from["from"]), (&json!("192.0.2.1"), &json!("192.0.2.7")));
        let networks = vec![Network::try_from("198.51.100.0/24".to_owned()).expect("a network")];
        let wider = Limits { targets: networks, ..LIMITS };
        assert!(admit(&wider, &to("198.51.100.3")).is_ok());
        assert!(admit(&wider, &to("192.0.2.8")).is_err());
    }

    #[test]
    fn rates_and_streams_are_limited() {
        let tcp = json!({"do": "flow", "role": "client", "address": "192.0.2.7", "flow": {"kind": "tcp", "streams": 4}});
        let admitted = admit(&LIMITS, &tcp).expect("within the limits");
        assert_eq!(admitted["max_pacing_rate"], 250_000_000);
        let udp = |rate: u64| json!({"do": "flow", "role": "client", "address": "192.0.2.7", "flow": {"kind": "udp", "rate": rate}});
        assert!(admit(&LIMITS, &udp(1_000_000_000)).is_ok());
        assert!(admit(&LIMITS, &udp(1_000_000_001)).is_err());
        let ping = |interval: u64| json!({"do": "flow", "role": "client", "address": "192.0.2.7", "flow": {"kind": "ping", "payload": 972, "interval": interval}});
        // 1,000 B with their headers, each 8 µs.
        assert!(admit(&LIMITS, &ping(8_000)).is_ok());
        assert!(admit(&LIMITS, &ping(7_999)).is_err());
        let mut disguised = ping(7_999);
        disguised["flow"]["rate"] = json!(1);
        assert!(admit(&LIMITS, &disguised).is_err());
        let many = json!({"do": "flow", "role": "server", "flow": {"kind": "tcp", "streams": 9}});
        assert!(admit(&LIMITS, &many).is_err());
        let limits = LIMITS;
        let mut policy = Policy::new(&limits, [192, 0, 2, 7].into(), [192, 0, 2, 1].into(), None);
        let five = json!({"do": "flow", "role": "server", "flow": {"kind": "tcp", "streams": 5}}).to_string();
        assert!(policy.admit(five.as_bytes()).is_ok());
        assert!(policy.admit(five.as_bytes()).is_err());
    }

    #[test]
    fn what_is_admitted_is_a_command_of_the_agent() {
        for command in [
            json!({"do": "clock", "id": 1}),
            json!({"do": "host", "sysctls": ["net.ipv4.tcp_ecn"]}),
            json!({"do": "reflect", "address": "0.0.0.0", "token": 1}),
            json!({"do": "flow", "role": "server", "flow": {"name": "a", "from": "b", "to": "c", "start": 0, "streams": 1, "kind": "tcp", "cc": {"name": "cubic"}, "sender": {}, "receiver": {}}}),
            json!({"do": "start", "at": 1, "duration": 5, "id": 9}),
        ] {
            let admitted = admit(&LIMITS, &command).expect("it is allowed");
            serde_json::from_value::<Request>(admitted).expect("a command of the agent");
        }
    }
}
