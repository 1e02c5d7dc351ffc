//! Kinds of values a person writes: markers that give a field's schema the kind by which it is read.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

macro_rules! kinds {
    ($($(#[$about:meta])* $type:ident = $kind:literal;)*) => {
        $(
            $(#[$about])*
            pub(super) struct $type;

            impl JsonSchema for $type {
                fn inline_schema() -> bool {
                    true
                }
                fn schema_name() -> Cow<'static, str> {
                    stringify!($type).into()
                }
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({"x-tcplab": $kind})
                }
            }
        )*
    };
}

kinds! {
    Version = "version";
    Name = "name";
    Text = "text";
    Switch = "switch";
    Count = "count";
    Streams = "streams";
    Warmup = "warmup";
    Seed = "seed";
    IpVersion = "ip";
    Dscp = "dscp";
    Ect = "ect";
    TimeSpan = "time";
    PositiveTime = "positive-time";
    Moment = "moment";
    PositiveMoment = "positive-moment";
    Interval = "interval";
    Omit = "omit";
    Rate = "rate";
    LinkRate = "link-rate";
    Size = "size";
    PositiveSize = "positive-size";
    Mtu = "mtu";
    Packets = "packets";
    InitialWindow = "initial-window";
    Probability = "probability";
    Correlation = "correlation";
    Window = "window";
    Sizes = "sizes";
    Cpus = "cpus";
    Port = "port";
    Ports = "ports";
    Around = "around";
    Sysctls = "sysctls";
    Control = "control";
    StudyVersion = "study-version";
    FileOrMapping = "file-or-mapping";
    Words = "words";
    Settings = "settings";
    Scalars = "scalars";
    Choices = "choices";
    AxisValues = "axis-values";
    Cells = "cells";
    Metric = "metric";
}
