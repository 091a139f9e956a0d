//! What is measured: histograms and sums, kept since the start of the process and sent as a whole each time. The number
//! of different attributes is bounded; further ones are left out.

use std::collections::BTreeMap;

use crate::attributes::Attributes;
use crate::otlp::{Field, Node, each, message, one};

/// Different attributes of one instrument.
const MOST_SERIES: usize = 500;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// The boundaries that the conventions give for tokens.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// The boundaries that the conventions give for seconds.
const SECOND_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// An instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instrument {
    TokenUsage,
    OperationDuration,
    ToolDuration,
    Cost,
    Decisions,
    Turns,
}

impl Instrument {
    const fn facts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::TokenUsage => ("gen_ai.client.token.usage", "{token}", "Tokens of a model call"),
            Self::OperationDuration => ("gen_ai.client.operation.duration", "s", "Duration of a model call"),
            Self::ToolDuration => ("qoder.tool.duration", "s", "Duration of a tool's call"),
            Self::Cost => ("qoder.cost", "{USD}", "Money by the price table"),
            Self::Decisions => ("qoder.decisions", "{decision}", "Decisions about calls"),
            Self::Turns => ("qoder.turns", "{turn}", "Turns that ended"),
        }
    }

    fn bounds(self) -> Option<&'static [f64]> {
        match self {
            Self::TokenUsage => Some(&TOKEN_BOUNDS),
            Self::OperationDuration | Self::ToolDuration => Some(&SECOND_BOUNDS),
            Self::Cost | Self::Decisions | Self::Turns => None,
        }
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) instrument: Instrument,
    pub(crate) value: f64,
    pub(crate) attributes: Attributes,
}

#[derive(Debug)]
struct Series {
    attributes: Attributes,
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
    buckets: Vec<u64>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    series: BTreeMap<Instrument, BTreeMap<String, Series>>,
}

impl Meter {
    /// Takes a measurement in.
    pub(crate) fn add(&mut self, measurement: Measurement) {
        let Measurement { instrument, value, attributes } = measurement;
        let all = self.series.entry(instrument).or_default();
        let key = attributes.key();
        if all.len() >= MOST_SERIES && !all.contains_key(&key) {
            return;
        }
        let bounds = instrument.bounds().unwrap_or_default();
        let series = all.entry(key).or_insert_with(|| Series {
            attributes,
            count: 0,
            sum: 0.0,
            least: value,
            most: value,
            buckets: vec![0; bounds.len() + 1],
        });
        series.count += 1;
        series.sum += value;
        series.least = series.least.min(value);
        series.most = series.most.max(value);
        let bucket = bounds.iter().take_while(|bound| value > **bound).count();
        if let Some(count) = series.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    /// True when nothing was measured yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The fields of all metrics, for the message that holds them.
    pub(crate) fn fields(&self, start_nanos: u64, now_nanos: u64) -> Vec<Field> {
        let times = [
            one(2, "startTimeUnixNano", Node::Fixed64(start_nanos)),
            one(3, "timeUnixNano", Node::Fixed64(now_nanos)),
        ];
        let metric = |(instrument, series): (&Instrument, &BTreeMap<String, Series>)| {
            let (name, unit, description) = instrument.facts();
            let points = series.values().map(|series| {
                let mut fields = times.to_vec();
                fields.extend(series.fields(instrument.bounds()));
                each(1, "dataPoints", Node::Message(fields))
            });
            let mut data: Vec<Field> = points.collect();
            data.push(one(2, "aggregationTemporality", Node::Enumeration(CUMULATIVE)));
            let data = if instrument.bounds().is_some() {
                message(9, "histogram", data)
            } else {
                data.push(one(3, "isMonotonic", Node::Flag(true)));
                message(7, "sum", data)
            };
            each(
                2,
                "metrics",
                Node::Message(vec![
                    one(1, "name", Node::Text(name.to_owned())),
                    one(2, "description", Node::Text(description.to_owned())),
                    one(3, "unit", Node::Text(unit.to_owned())),
                    data,
                ]),
            )
        };
        self.series.iter().map(metric).collect()
    }
}

impl Series {
    fn fields(&self, bounds: Option<&'static [f64]>) -> Vec<Field> {
        let Some(bounds) = bounds else {
            let mut fields = vec![one(4, "asDouble", Node::Double(self.sum))];
            fields.extend(self.attributes.fields(7));
            return fields;
        };
        let mut fields = vec![
            one(4, "count", Node::Fixed64(self.count)),
            one(5, "sum", Node::Double(self.sum)),
            one(6, "bucketCounts", Node::Fixed64s(self.buckets.clone())),
            one(7, "explicitBounds", Node::Doubles(bounds.to_vec())),
            one(11, "min", Node::Double(self.least)),
            one(12, "max", Node::Double(self.most)),
        ];
        fields.extend(self.attributes.fields(9));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::json;

    fn measured(instrument: Instrument, value: f64, model: &str) -> Measurement {
        let attributes = Attributes::default().with("gen_ai.request.model", model);
        Measurement { instrument, value, attributes }
    }

    #[test]
    fn equal_attributes_are_counted_together() {
        let mut meter = Meter::default();
        for value in [1.0, 5.0, 1e9] {
            meter.add(measured(Instrument::TokenUsage, value, "m"));
        }
        meter.add(measured(Instrument::Cost, 0.25, "m"));
        meter.add(measured(Instrument::Cost, 0.5, "m"));
        let told = json(&meter.fields(1, 2));
        let tokens = &told["metrics"][0];
        assert_eq!(tokens["name"], "gen_ai.client.token.usage");
        let point = &tokens["histogram"]["dataPoints"][0];
        assert_eq!((point["count"].as_str(), point["sum"].as_f64()), (Some("3"), Some(1_000_000_006.0)));
        let buckets: Vec<&str> =
            point["bucketCounts"].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect();
        assert_eq!((buckets.len(), buckets[0], buckets[2], buckets[14]), (15, "1", "1", "1"));
        assert_eq!(told["metrics"][1]["sum"]["dataPoints"][0]["asDouble"], 0.75);
        assert_eq!(told["metrics"][1]["sum"]["isMonotonic"], true);
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let mut meter = Meter::default();
        for number in 0..MOST_SERIES + 10 {
            meter.add(measured(Instrument::Turns, 1.0, &format!("m{number}")));
        }
        let told = json(&meter.fields(1, 2));
        assert_eq!(told["metrics"][0]["sum"]["dataPoints"].as_array().unwrap().len(), MOST_SERIES);
    }
}
