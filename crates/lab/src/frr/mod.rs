//! Routers that run FRR: the configuration of each, from the plan, and the daemons in its node.
//!
//! One file a protocol. Each gives lines in FRR's own language; which daemons a router needs follows from the lines.

mod bgp;
mod daemons;
mod dry_run;
mod network;
mod ospf;
mod static_route;
#[cfg(test)]
mod tests;

use tcplab_plan::{Node, Plan};

pub(crate) use daemons::start;

use network::Network;

/// The daemons besides zebra, and how a line that is theirs begins.
const DAEMONS: [(&str, &[&str]); 10] = [
    ("staticd", &["ip route ", "ipv6 route "]),
    ("bfdd", &["bfd"]),
    ("bgpd", &["router bgp"]),
    ("ospf6d", &["router ospf6"]),
    ("ospfd", &["router ospf"]),
    ("ripd", &["router rip"]),
    ("ripngd", &["router ripng"]),
    ("isisd", &["router isis"]),
    ("eigrpd", &["router eigrp"]),
    ("babeld", &["router babel"]),
];

/// A router that runs FRR.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    pub(crate) node: String,
    pub(crate) configuration: String,
    /// The file of the scenario that ends the configuration.
    pub(crate) file: Option<File>,
}

/// A file of the scenario in FRR's own language.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    /// Lines of the configuration before its first.
    pub(crate) offset: usize,
}

impl Router {
    /// The daemons that it runs besides zebra.
    fn daemons(&self) -> Vec<&'static str> {
        let is_of = |prefixes: &[&str]| {
            let begins = |line: &str, prefix: &str| {
                line.strip_prefix(prefix).is_some_and(|rest| {
                    prefix.ends_with(' ') || !rest.starts_with(|next: char| next.is_alphanumeric())
                })
            };
            self.configuration.lines().any(|line| prefixes.iter().any(|prefix| begins(line, prefix)))
        };
        // Other daemons ask for it within their sections: `neighbor 10.0.1.2 bfd`.
        let asks =
            |daemon| daemon == "bfdd" && self.configuration.split_whitespace().any(|word| word == "bfd");
        let runs = DAEMONS.iter().filter(|(daemon, prefixes)| is_of(prefixes) || asks(*daemon));
        runs.map(|(daemon, _)| *daemon).collect()
    }
}

/// The routers of a plan that run protocols.
pub(crate) fn routers(plan: &Plan) -> Vec<Router> {
    let network = Network::new(plan);
    plan.nodes.iter().filter_map(|node| router(&network, node)).collect()
}

fn router(network: &Network<'_>, node: &Node) -> Option<Router> {
    let routing = node.routing.as_ref()?;
    // Timestamps in zebra's log are in microseconds.
    let mut lines = vec![format!("hostname {}", node.name), "log timestamp precision 6".to_owned()];
    lines.extend(static_route::lines(network, node, &routing.static_routes));
    for (version, ospf) in [(ospf::VERSION_2, &routing.ospf), (ospf::VERSION_3, &routing.ospf6)] {
        if let Some(ospf) = ospf {
            lines.extend(ospf::lines(network, node, ospf, &version));
        }
    }
    if let Some(bgp) = &routing.bgp {
        lines.extend(bgp::lines(network, node, bgp));
    }
    let detects = |bfd: bool| bfd.then_some("bfd");
    let own = [&routing.ospf, &routing.ospf6].into_iter().flatten().any(|ospf| ospf.bfd);
    lines.extend(detects(own || routing.bgp.as_ref().is_some_and(|bgp| bgp.bfd)).map(str::to_owned));
    let mut configuration = lines.join("\n") + "\n";
    let file = routing.frr.as_ref().map(|frr| {
        configuration += &format!("!\n! {}\n!\n", frr.file);
        let offset = configuration.lines().count();
        configuration += &format!("{}\n", frr.text.trim_end());
        File { name: frr.file.clone(), offset }
    });
    Some(Router { node: node.name.clone(), configuration, file })
}
