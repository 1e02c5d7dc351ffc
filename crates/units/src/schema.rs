//! How each type stands in a JSON Schema: a whole number of base units, with the kind of quantity that it is.
//!
//! The extension key `x-tcplab` names the kind, by which the scenario language knows how a person writes it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Probability, Rate, Span, Time};

macro_rules! quantity {
    ($type:ty, $name:literal, $kind:literal, $minimum:literal) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "integer", "minimum": $minimum, "x-tcplab": $kind})
            }
        }
    };
}

quantity!(Span, "Span", "time", 0);
quantity!(Time, "Time", "moment", 0);
quantity!(Rate, "Rate", "rate", 1);
quantity!(Probability, "Probability", "probability", 0);
