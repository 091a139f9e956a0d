//! What the environment says about telemetry: whether it is wanted, where it goes and how much of it. The variables are
//! those of the OpenTelemetry specification. Nothing of a project is looked at. A value that cannot be used is reported and
//! switches telemetry off; it stops nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// The variable that switches telemetry on, to the usual place when no other is named, or off whatever else is named.
pub const SWITCH: &str = "QODER_ENABLE_TELEMETRY";
/// Where a collector is without any word about it.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SPAN_DELAY: Duration = Duration::from_secs(5);
const DEFAULT_METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// How bodies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Protobuf,
    Json,
}

/// Where one kind of data goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: Url,
    pub(crate) headers: HeaderMap,
}

/// Which traces are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// The share of traces that begin here.
    pub(crate) share: f64,
    /// True when the process that started us decides, if it began a trace.
    pub(crate) parent_decides: bool,
}

/// The place in a trace that another process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) sampled: bool,
}

/// Everything that the environment says.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    pub(crate) encoding: Encoding,
    pub(crate) timeout: Duration,
    pub(crate) span_delay: Duration,
    pub(crate) metric_interval: Duration,
    pub(crate) sampler: Sampler,
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) parent: Option<Parent>,
    /// True when texts of the conversation may be sent.
    pub(crate) content: bool,
    /// Values that must not be sent.
    pub(crate) secrets: Vec<String>,
    /// What the environment says about proxies and certificates.
    pub(crate) network: BTreeMap<String, String>,
}

/// Reads the environment. `None` when telemetry is not wanted; the error says why it cannot be had.
pub(crate) fn read(environment: &BTreeMap<String, String>) -> Result<Option<Configuration>, String> {
    let variables = Variables(environment);
    if let Some(other) =
        variables.text(SWITCH).filter(|_| !variables.is_true(SWITCH) && !variables.is_false(SWITCH))
    {
        // A value such as `off` must not count as on because a collector is named.
        return Err(format!("{SWITCH} is `{}`; accepted are 1, true, 0 and false", plain(other)));
    }
    if variables.is_false(SWITCH) || variables.is_true("OTEL_SDK_DISABLED") || !variables.ask_for_it() {
        return Ok(None);
    }
    let encoding = match variables.text("OTEL_EXPORTER_OTLP_PROTOCOL").unwrap_or("http/protobuf") {
        "http/protobuf" => Encoding::Protobuf,
        "http/json" => Encoding::Json,
        other => {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is `{}`; accepted are http/protobuf and http/json",
                plain(other)
            ));
        }
    };
    let traces = variables.target("TRACES", "v1/traces")?;
    let metrics = variables.target("METRICS", "v1/metrics")?;
    if traces.is_none() && metrics.is_none() {
        return Ok(None);
    }
    let headers = traces.iter().chain(&metrics).flat_map(|target| target.headers.values());
    // A key alone is as secret as the whole header with its scheme in front.
    let words = |value: &str| value.split_whitespace().chain([value]).map(str::to_owned).collect::<Vec<_>>();
    let secrets = headers.filter_map(|value| value.to_str().ok()).flat_map(words).collect();
    Ok(Some(Configuration {
        traces,
        metrics,
        encoding,
        timeout: variables.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", DEFAULT_TIMEOUT)?,
        span_delay: variables.milliseconds("OTEL_BSP_SCHEDULE_DELAY", DEFAULT_SPAN_DELAY)?,
        metric_interval: variables.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", DEFAULT_METRIC_INTERVAL)?,
        sampler: variables.sampler()?,
        resource: variables.resource()?,
        parent: variables.text("TRACEPARENT").and_then(parent),
        content: variables.is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        secrets,
        network: qoder_http::variables()
            .filter_map(|name| Some((name.to_owned(), environment.get(name)?.clone())))
            .collect(),
    }))
}

struct Variables<'a>(&'a BTreeMap<String, String>);

impl<'a> Variables<'a> {
    /// An empty variable counts as one that is not set.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    fn is_false(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value == "0" || value.eq_ignore_ascii_case("false"))
    }

    /// True when something in the environment asks for telemetry: the switch, or a place to send it to.
    fn ask_for_it(&self) -> bool {
        self.is_true(SWITCH) || ["TRACES", "METRICS"].iter().any(|kind| self.is_asked(kind))
    }

    /// True when a place is named for one kind of data, or an exporter that has a usual place.
    fn is_asked(&self, kind: &str) -> bool {
        let endpoints =
            [format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned()];
        endpoints.iter().any(|name| self.text(name).is_some())
            || self.text(&format!("OTEL_{kind}_EXPORTER")) == Some("otlp")
    }

    fn milliseconds(&self, name: &str, default: Duration) -> Result<Duration, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse::<u64>() {
            Ok(number) if (1..=86_400_000).contains(&number) => Ok(Duration::from_millis(number)),
            _ => Err(format!("{name} is `{}`; accepted are milliseconds from 1 to 86400000", plain(text))),
        }
    }

    /// Where one kind of data goes; `None` when it is switched off.
    fn target(&self, kind: &str, path: &str) -> Result<Option<Target>, String> {
        match self.text(&format!("OTEL_{kind}_EXPORTER")) {
            None if !self.is_true(SWITCH) && !self.is_asked(kind) => return Ok(None),
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => {
                let other = plain(other);
                return Err(format!("OTEL_{kind}_EXPORTER is `{other}`; accepted are otlp and none"));
            }
        }
        let own = format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT");
        let (name, address) = match self.text(&own) {
            Some(address) => (own.as_str(), address.to_owned()),
            None => {
                let base = self.text("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or(DEFAULT_ENDPOINT);
                ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/{path}", base.trim_end_matches('/')))
            }
        };
        // The address is not repeated: it may hold a key.
        let address = Url::parse(&address).map_err(|error| format!("{name} is no address: {error}"))?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(format!("{name} must begin with http:// or https://"));
        }
        let mut headers = self.headers("OTEL_EXPORTER_OTLP_HEADERS")?;
        headers.extend(self.headers(&format!("OTEL_EXPORTER_OTLP_{kind}_HEADERS"))?);
        Ok(Some(Target { address, headers }))
    }

    fn headers(&self, name: &str) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (key, value) in pairs(name, self.text(name).unwrap_or_default())? {
            let wrong = || format!("{name}: the header `{}` cannot be sent", plain(&key));
            let header = HeaderName::try_from(key.as_str()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }

    fn sampler(&self) -> Result<Sampler, String> {
        let name = self.text("OTEL_TRACES_SAMPLER").unwrap_or("parentbased_always_on");
        let (rule, parent_decides) = match name.strip_prefix("parentbased_") {
            Some(rule) => (rule, true),
            None => (name, false),
        };
        let share = match rule {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.share()?,
            _ => {
                return Err(format!(
                    "OTEL_TRACES_SAMPLER is `{}`; accepted are always_on, always_off and traceidratio, each also with \
                     parentbased_ in front",
                    plain(name)
                ));
            }
        };
        Ok(Sampler { share, parent_decides })
    }

    fn share(&self) -> Result<f64, String> {
        let text = self.text("OTEL_TRACES_SAMPLER_ARG").unwrap_or("1");
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
            _ => {
                Err(format!("OTEL_TRACES_SAMPLER_ARG is `{}`; accepted is a number from 0 to 1", plain(text)))
            }
        }
    }

    fn resource(&self) -> Result<Vec<(String, String)>, String> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let mut attributes = pairs(name, self.text(name).unwrap_or_default())?;
        if let Some(service) = self.text("OTEL_SERVICE_NAME") {
            attributes.retain(|(key, _)| key != "service.name");
            attributes.push(("service.name".to_owned(), service.to_owned()));
        }
        let own = [
            ("service.name", "qodercli"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("telemetry.sdk.name", "qoder"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        for (key, value) in own {
            if !attributes.iter().any(|(known, _)| known == key) {
                attributes.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(attributes)
    }
}

/// `a=b,c=d`, with percent signs in the values decoded. The error names no value: it may be a key.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for (index, part) in text.split(',').enumerate().filter(|(_, part)| !part.trim().is_empty()) {
        let wrong = || format!("{name}: entry {} is not of the form name=value", index + 1);
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), decoded(value.trim()).ok_or_else(wrong)?);
        if key.is_empty() {
            return Err(wrong());
        }
        pairs.push((key.to_owned(), value));
    }
    Ok(pairs)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Reads a `traceparent` as the W3C defines it. One that cannot be read counts as none, as the definition says.
fn parent(text: &str) -> Option<Parent> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let more = parts.next().is_some();
    if version.len() != 2 || version == "ff" || (version == "00" && more) || flags.len() != 2 {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    let parent = Parent { trace: bytes(trace)?, span: bytes(span)?, sampled: flags & 1 == 1 };
    (parent.trace != [0; 16] && parent.span != [0; 8]).then_some(parent)
}

fn bytes<const LENGTH: usize>(hex: &str) -> Option<[u8; LENGTH]> {
    let plain = hex.len() == LENGTH * 2 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; LENGTH];
    for (index, byte) in bytes.iter_mut().enumerate().take(if plain { LENGTH } else { 0 }) {
        *byte = u8::from_str_radix(&hex[index * 2..index * 2 + 2], 16).ok()?;
    }
    plain.then_some(bytes)
}

/// A value of the environment as it may be shown.
fn plain(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Option<Configuration>, String> {
        read(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn on(pairs: &[(&str, &str)]) -> Configuration {
        of(&[&[(SWITCH, "1")], pairs].concat()).unwrap().unwrap()
    }

    #[test]
    fn it_is_off_unless_the_environment_asks_for_it() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert!(of(&[]).unwrap().is_none());
        assert!(of(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_SAMPLER", "nonsense")]).unwrap().is_none());
        assert!(of(&[(SWITCH, "0")]).unwrap().is_none());
        assert!(of(&[(SWITCH, "false"), endpoint]).unwrap().is_none());
        assert!(
            of(&[(SWITCH, "off"), endpoint])
                .unwrap_err()
                .contains("is `off`; accepted are 1, true, 0 and false")
        );
        assert!(of(&[endpoint]).unwrap().is_some_and(|all| all.traces.is_some() && all.metrics.is_some()));
        let traces = of(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t.test/v1/traces")]).unwrap();
        assert!(traces.is_some_and(|all| all.traces.is_some() && all.metrics.is_none()));
        let metrics = of(&[("OTEL_METRICS_EXPORTER", "otlp")]).unwrap();
        assert!(metrics.is_some_and(|all| all.traces.is_none() && all.metrics.is_some()));
        assert!(of(&[(SWITCH, "1"), ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        let both = [(SWITCH, "1"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
        assert!(of(&both).unwrap().is_none());
    }

    #[test]
    fn endpoints_follow_the_specification() {
        let address = |target: &Option<Target>| target.as_ref().unwrap().address.to_string();
        let plain = on(&[]);
        assert_eq!(address(&plain.traces), "http://localhost:4318/v1/traces");
        let base = on(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.test/otlp/")]);
        assert_eq!(address(&base.metrics), "https://c.test/otlp/v1/metrics");
        let own = on(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.test"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t.test/as-it-is"),
        ]);
        assert_eq!(address(&own.traces), "http://t.test/as-it-is");
        assert_eq!(address(&own.metrics), "https://c.test/v1/metrics");
    }

    #[test]
    fn headers_and_attributes_are_decoded_and_headers_are_secrets() {
        let configuration = on(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b%3D, authorization=Bearer token-of-the-test"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=other"),
            ("OTEL_SERVICE_NAME", "mine"),
        ]);
        let headers = configuration.traces.unwrap().headers;
        assert_eq!(headers["x-key"], "a b=");
        assert!(configuration.secrets.contains(&"Bearer token-of-the-test".to_owned()));
        assert!(configuration.secrets.contains(&"token-of-the-test".to_owned()));
        let has =
            |key: &str, value: &str| configuration.resource.contains(&(key.to_owned(), value.to_owned()));
        assert!(has("team", "a,b") && has("service.name", "mine") && !has("service.name", "other"));
    }

    #[test]
    fn what_cannot_be_used_is_named_without_its_secrets() {
        let cases = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x", "http://"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address", "no address"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "sk-secret", "entry 1"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=%zz-secret", "entry 1"),
            ("OTEL_TRACES_SAMPLER", "sometimes", "traceidratio"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "0", "milliseconds"),
            ("OTEL_TRACES_EXPORTER", "zipkin", "otlp"),
        ];
        for (name, value, expected) in cases {
            let problem = of(&[(SWITCH, "true"), (name, value)]).unwrap_err();
            assert!(problem.contains(name) && problem.contains(expected), "{problem}");
            assert!(!problem.contains("secret"), "{problem}");
        }
        let share = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")];
        assert!(of(&[&[(SWITCH, "1")], &share[..]].concat()).unwrap_err().contains("from 0 to 1"));
    }

    #[test]
    fn a_parent_is_read_as_the_w3c_defines_it() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = on(&[("TRACEPARENT", good)]).parent.unwrap();
        assert_eq!((read.trace[0], read.span[7], read.sampled), (0x0a, 0x31, true));
        for bad in [
            "",
            "nonsense",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-äaf7651916cd43dd8448eb211c8031c-b7ad6b7169203331-01",
        ] {
            assert_eq!(on(&[("TRACEPARENT", bad)]).parent, None, "{bad}");
        }
    }
}
