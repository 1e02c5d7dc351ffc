//! Real hosts in the language: where each is, and what the path between them must be like.

use schemars::JsonSchema;
use serde::Deserialize;

use super::kinds;

/// Where a real host is. Short form: its URL (`left: ssh://alice@left.example`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "ssh"))]
pub(crate) struct Place {
    /// Its URL, or its name to ssh.
    #[schemars(with = "kinds::Text")]
    pub(crate) ssh: String,
    /// The IP address at which the other hosts reach it; default: the one at which ssh did.
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) address: Option<String>,
    /// CPUs that its processes are pinned to.
    #[schemars(with = "Option<kinds::Cpus>")]
    pub(crate) cpus: Option<Vec<u32>>,
    /// Ports at which flows connect to it; default: those that its kernel chooses.
    #[schemars(with = "Option<kinds::Ports>")]
    pub(crate) ports: Option<String>,
    /// Whether it does to what it sends what the scenario's links do, by netem.
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) impair: Option<bool>,
}

impl Place {
    /// All of it as one URL.
    pub(crate) fn url(&self) -> String {
        let mut url = if self.ssh.contains(':') { self.ssh.clone() } else { format!("ssh://{}", self.ssh) };
        let cpus =
            self.cpus.as_ref().map(|cpus| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
        let impair = self.impair.map(|on| if on { "on" } else { "off" }.to_owned());
        let settings = [
            ("address", self.address.clone()),
            ("cpus", cpus),
            ("ports", self.ports.clone()),
            ("impair", impair),
        ];
        for (key, value) in settings.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&format!("{key}={value}"));
        }
        url
    }
}

/// Requirements on the path between real hosts; the run does not start if they are not met.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectPath {
    /// Idle round-trip time and how far from it is accepted (`80 ms ± 10 %`).
    #[schemars(with = "Option<kinds::Around>")]
    pub(crate) rtt: Option<tcplab_plan::Around>,
    /// Largest IP packet, at least.
    #[schemars(with = "Option<kinds::Mtu>")]
    pub(crate) mtu: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_url() {
        let bare =
            |ssh: &str| Place { ssh: ssh.to_owned(), address: None, cpus: None, ports: None, impair: None };
        assert_eq!(bare("ssh://a@b:22").url(), "ssh://a@b:22");
        let address = Some("192.0.2.7".to_owned());
        let pinned = Place { address: address.clone(), cpus: Some(vec![0, 2]), ..bare("right") };
        assert_eq!(pinned.url(), "ssh://right?address=192.0.2.7&cpus=0,2");
        assert_eq!(Place { address, ..bare("local:") }.url(), "local:?address=192.0.2.7");
        let walled = Place { ports: Some("5300-5399".to_owned()), ..bare("right") };
        assert_eq!(walled.url(), "ssh://right?ports=5300-5399");
        assert_eq!(Place { impair: Some(true), ..bare("right") }.url(), "ssh://right?impair=on");
    }
}
