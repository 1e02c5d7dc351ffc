//! Topologies that a few numbers describe.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::Routing;

use super::kinds;
use super::network::Direction;

/// A network that is generated; `nodes` and `links` add to it. Hosts are `h1`, `h2`, ..., routers `r1`, `r2`, ...
/// unless their kind says otherwise.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-noun" = "topology", "x-example" = "kind: star", "x-rule" = "topology"))]
pub(crate) struct Generated {
    /// Nodes that join the links: `router` (default) between subnets, or `switch` within one.
    #[serde(default = "router")]
    #[schemars(with = "Option<Joint>")]
    pub(crate) joints: Joint,
    /// Routing protocols of every generated router, in place of static routes along shortest paths.
    pub(crate) routing: Option<Routing>,
    /// Links between routers or switches; default: unlimited, without delay.
    pub(crate) core: Option<Direction>,
    /// Links of hosts; default: unlimited, without delay.
    pub(crate) edge: Option<Direction>,
    /// Its form.
    #[serde(flatten)]
    pub(crate) form: Form,
}

/// Nodes where links meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Joint {
    /// Forwards between subnets.
    Router,
    /// Forwards within a subnet.
    Switch,
}

fn router() -> Joint {
    Joint::Router
}

/// The form of a generated network.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Form {
    /// Two routers, and hosts at both: `left1` ... at `r1`, `right1` ... at `r2`. The bottleneck is `core`.
    Dumbbell {
        /// Hosts on each side (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 500))]
        hosts: u32,
    },
    /// Routers in a line. A flow from `long-from` to `long-to` crosses every link between them; `from1` and `to1`,
    /// `from2` and `to2`, ... are at the ends of one each.
    ParkingLot {
        /// Links between the routers (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 300))]
        bottlenecks: u32,
    },
    /// Hosts around one router.
    Star {
        /// Hosts (default 4).
        #[serde(default = "four")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// Routers in a line, with hosts at each.
    Line {
        /// Routers (default 3).
        #[serde(default = "three")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        routers: u32,
        /// Hosts at each router (default 1).
        #[serde(default = "one")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// Routers in a ring, with hosts at each.
    Ring {
        /// Routers, 3 or more (default 4).
        #[serde(default = "four")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        routers: u32,
        /// Hosts at each router (default 1).
        #[serde(default = "one")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// Routers `rROW-COLUMN` in a grid, with hosts at each.
    Grid {
        /// Rows (default 3).
        #[serde(default = "three")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        rows: u32,
        /// Columns (default 3).
        #[serde(default = "three")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        columns: u32,
        /// Hosts at each router (default 1).
        #[serde(default = "one")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// A tree of routers, numbered level by level, with hosts as its leaves.
    Tree {
        /// Levels of routers (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 10))]
        depth: u32,
        /// Children of each router (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        fanout: u32,
    },
    /// A link between each two routers, with hosts at each.
    FullMesh {
        /// Routers (default 4).
        #[serde(default = "four")]
        #[schemars(with = "Option<kinds::Count>", range(max = 100))]
        routers: u32,
        /// Hosts at each router (default 1).
        #[serde(default = "one")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// Three levels of routers with k ports each (Al-Fares, Loukissas and Vahdat 2008): `core1` and so on. In each of
    /// k pods k/2 of `aggPOD-NUMBER` and of `edgePOD-NUMBER`, with k/2 hosts at each of the latter.
    FatTree {
        /// Ports of a router, an even number (default 4).
        #[serde(default = "four")]
        #[schemars(with = "Option<kinds::Count>", range(max = 14))]
        k: u32,
    },
    /// Each of the `leaf1` ... is joined to each of the `spine1` ...; hosts are at the leaves.
    LeafSpine {
        /// Leaves (default 4).
        #[serde(default = "four")]
        #[schemars(with = "Option<kinds::Count>", range(max = 200))]
        leaves: u32,
        /// Spines (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 100))]
        spines: u32,
        /// Hosts at each leaf (default 2).
        #[serde(default = "two")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
    },
    /// Routers at random places in a square, joined at random (Waxman 1988): two at a distance d with the probability
    /// alpha · exp(-d / (beta · L)), where L is the greatest distance. Parts without a link between them get the shortest.
    Random {
        /// Routers (default 10).
        #[serde(default = "ten")]
        #[schemars(with = "Option<kinds::Count>", range(max = 500))]
        routers: u32,
        /// Hosts at each router (default 1).
        #[serde(default = "one")]
        #[schemars(with = "Option<kinds::Count>", range(max = 1000))]
        hosts: u32,
        /// Density of links (default 40 %).
        #[serde(default = "forty_percent")]
        #[schemars(with = "Option<kinds::Probability>")]
        alpha: u32,
        /// Share of long links among them (default 40 %).
        #[serde(default = "forty_percent")]
        #[schemars(with = "Option<kinds::Probability>")]
        beta: u32,
        /// Seed of the places and links (default 1); runs with other seeds of their own have the same network.
        #[serde(default = "seed")]
        #[schemars(with = "Option<kinds::Seed>")]
        seed: u64,
    },
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

fn three() -> u32 {
    3
}

fn four() -> u32 {
    4
}

fn ten() -> u32 {
    10
}

fn forty_percent() -> u32 {
    400_000_000
}

fn seed() -> u64 {
    1
}
