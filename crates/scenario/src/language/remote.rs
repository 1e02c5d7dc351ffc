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
}

impl Place {
    /// All of it as one URL.
    pub(crate) fn url(&self) -> String {
        let mut url = if self.ssh.contains(':') { self.ssh.clone() } else { format!("ssh://{}", self.ssh) };
        let cpus = self.cpus.iter().map(|cpus| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
        let settings = self.address.iter().map(|address| format!("address={address}"));
        for setting in settings.chain(cpus.map(|cpus| format!("cpus={cpus}"))) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&setting);
        }
        url
    }
}

/// What the path between real hosts must be like; on another one the run is not started.
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
        let place = |ssh: &str, address: Option<&str>, cpus: Option<Vec<u32>>| {
            Place { ssh: ssh.to_owned(), address: address.map(str::to_owned), cpus }.url()
        };
        assert_eq!(place("ssh://a@b:22", None, None), "ssh://a@b:22");
        assert_eq!(
            place("right", Some("192.0.2.7"), Some(vec![0, 2])),
            "ssh://right?address=192.0.2.7&cpus=0,2"
        );
        assert_eq!(place("local:", Some("192.0.2.7"), None), "local:?address=192.0.2.7");
    }
}
