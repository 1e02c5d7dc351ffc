//! A study file: a scenario, a grid over it, repetitions, and expectations.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::kinds;

/// Paths in the scenario, and what each is set to.
type Settings = Map<String, Value>;

/// A scenario over a grid of parameters, with repetitions, a baseline and expectations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "tcplab study")]
pub(crate) struct Study {
    /// Version of the language: 1.
    #[schemars(with = "kinds::StudyVersion")]
    tcplab: u64,
    /// Name of the study.
    #[schemars(with = "kinds::Name")]
    study: String,
    /// Free text, shown in the report.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Text>")]
    description: String,
    /// The scenario: a file (relative to the study's), or the scenario itself.
    #[schemars(with = "kinds::FileOrMapping")]
    scenario: Value,
    /// The engine, or several to compare: `[sim, kernel]`.
    #[serde(default = "sim")]
    #[schemars(with = "Option<kinds::Words>")]
    engine: Vec<String>,
    /// The axes by name.
    #[serde(default)]
    #[schemars(with = "Option<IndexMap<String, Axis>>")]
    grid: IndexMap<String, Axis>,
    /// `full`: every combination; `zip`: first with first, second with second; or a list of grids, each with values of
    /// some axes (`{window: [64 KiB, 1 MiB], group: windows}`), the others left as the scenario has them.
    #[serde(default = "full")]
    #[schemars(with = "Option<kinds::Cells>")]
    cells: Value,
    /// Runs of each cell, each with the next seed.
    #[serde(default = "three")]
    #[schemars(with = "Option<kinds::Count>")]
    repeat: u64,
    /// Seed of the first repetition, and of the order.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Seed>")]
    seed: u64,
    /// The order in which the runs are made. A random one keeps a machine's drift from looking like an effect.
    #[serde(default)]
    #[schemars(with = "Option<Order>")]
    order: Order,
    /// Pause between two runs on real systems; the simulator needs none.
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    gap: u64,
    /// The cell the others are compared with, by values of its axes.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Scalars>")]
    baseline: Settings,
    /// One more cell with the best of each axis.
    combine: Option<Combine>,
    /// Expectations; a study with one that fails ends with exit code 1.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Expectation>>")]
    expect: Vec<Expectation>,
    /// Figures of the report; default: those that suit the axes.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Plot>>")]
    plots: Vec<Plot>,
    /// Changes by `--quick` beyond the defaults.
    #[serde(default)]
    #[schemars(with = "Option<Quick>")]
    quick: Quick,
}

/// One parameter that varies. Short form: a list of values, where the axis' name is the path it sets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-short" = "values", "x-short-list" = true, "x-rule" = "axis"))]
struct Axis {
    /// The path in the scenario that it sets, as `--set` takes it (`flows.bulk.cc`), or several paths that get the
    /// same value. Without it, each of the `values` says itself what it sets.
    #[schemars(with = "Option<kinds::Words>")]
    set: Option<Vec<String>>,
    /// The values; or, by label, what to set: `{lossy: {network.path.loss: 1 %}}`.
    #[schemars(with = "kinds::AxisValues")]
    values: Value,
    /// Its label in figures and tables; default: its name.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Text>")]
    label: String,
}

/// A statement about the results, which passes or fails. Short form: the statement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-short" = "that"))]
struct Expectation {
    /// The statement: `goodput(cc=bbr1) > 5 * goodput(cc=cubic)`.
    #[schemars(with = "kinds::Text")]
    that: String,
    /// The finding it stands for, in words.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Text>")]
    finding: String,
}

/// One more cell at the end: the best value of each axis, taken together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Combine {
    /// The axes whose best values are combined.
    #[schemars(with = "Vec<kinds::Text>", length(min = 1))]
    axes: Vec<String>,
    /// The goal: the maximum of this metric (or the minimum, with `minimum: on`).
    #[serde(default = "goodput")]
    #[schemars(with = "Option<kinds::Metric>")]
    goal: String,
    /// Take the minimum instead of the maximum.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    minimum: bool,
}

/// A figure of the report.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Plot {
    /// `bars`: one a cell with intervals. `curve`: over an axis. `laws`: a curve of goodput with the bounds by the laws of TCP.
    /// `heatmap`: over two axes. `map`: which cell gains most over its baseline, over two axes. `tradeoff`: throughput against
    /// delay (`metric`, default the 95th percentile of the RTT). `improvement`: percent over the baseline. `fairness`:
    /// Jain's index over time. `cpu`: CPU against goodput. `queue`: the bottleneck's queue over time (`metric`:
    /// `queueing_delay`, the default, or a figure that the discipline shows of itself, such as `prob`).
    kind: PlotKind,
    /// The figure.
    #[serde(default = "goodput")]
    #[schemars(with = "Option<kinds::Metric>")]
    metric: String,
    /// The axis along the figure; default of a curve, laws or heatmap: the first that varies.
    #[schemars(with = "Option<kinds::Text>")]
    over: Option<String>,
    /// The axis that colours tell apart; default of a heatmap: the next that varies.
    #[schemars(with = "Option<kinds::Text>")]
    by: Option<String>,
    /// The axes of which the report shows one value at a time, to be chosen.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Words>")]
    each: Vec<String>,
    /// The flow whose metric it is; default: all flows together.
    #[schemars(with = "Option<kinds::Text>")]
    flow: Option<String>,
    /// Only the cells with these values.
    #[serde(default, rename = "where")]
    #[schemars(with = "Option<kinds::Scalars>")]
    chosen: Settings,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlotKind {
    Bars,
    Curve,
    Laws,
    Heatmap,
    Map,
    Tradeoff,
    Improvement,
    Fairness,
    Cpu,
    Queue,
}

/// The order in which runs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    #[default]
    Random,
    Given,
}

/// Changes by `--quick`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Quick {
    /// Repetitions.
    #[serde(default = "two")]
    #[schemars(with = "Option<kinds::Count>")]
    repeat: u64,
    /// Settings of the scenario, such as `duration: 5 s`.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Settings>")]
    set: Settings,
    /// Values of axes that are left out.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Choices>")]
    skip: Settings,
    /// Further changes where the engine `kernel` takes part.
    kernel: Option<QuickOnKernel>,
}

impl Default for Quick {
    fn default() -> Quick {
        Quick { repeat: two(), set: Settings::new(), skip: Settings::new(), kernel: None }
    }
}

/// Further changes by `--quick` where the engine `kernel` takes part: for all engines, so that they stay comparable.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct QuickOnKernel {
    /// Repetitions; default: those of `quick`.
    #[schemars(with = "Option<kinds::Count>")]
    repeat: Option<u64>,
    /// Settings of the scenario, such as a lower `rate`.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Settings>")]
    set: Settings,
    /// Values of axes that are left out, instead of those that `quick` has for the axis.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Choices>")]
    skip: Settings,
}

fn sim() -> Vec<String> {
    vec!["sim".to_owned()]
}

fn full() -> Value {
    Value::from("full")
}

fn goodput() -> String {
    "goodput".to_owned()
}

fn one() -> u64 {
    1
}

fn two() -> u64 {
    2
}

fn three() -> u64 {
    3
}
