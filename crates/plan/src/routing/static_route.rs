//! Static routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way to a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StaticRoute {
    /// A node, which stands for the networks of its interfaces, or a prefix such as `10.0.3.0/24`.
    #[schemars(extend("x-tcplab" = "text"))]
    pub to: String,
    /// The neighbour that packets go to: a node, or an address such as `10.0.1.2`.
    #[schemars(extend("x-tcplab" = "text"))]
    pub via: String,
    /// Administrative distance: of several routes to a network the one with the lowest counts. Default: 1.
    #[serde(default = "one")]
    #[schemars(extend("x-tcplab" = "distance"))]
    pub distance: u32,
}

fn one() -> u32 {
    1
}
