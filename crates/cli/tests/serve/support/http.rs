//! Reads answers.

use std::io::BufRead;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The JSON of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The type and message of an error, whose envelope has to be whole.
    #[track_caller]
    pub fn error(&self, status: u16) -> (String, String) {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(body["type"], "error", "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        let text = |key: &str| body["error"][key].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        (text("type"), text("message"))
    }
}

pub fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status =
        line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { return (status, headers) };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

pub fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> Vec<u8> {
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = Vec::new();
    match length.and_then(|(_, value)| value.parse::<usize>().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).unwrap();
        }
        None => drop(reader.read_to_end(&mut body)),
    }
    body
}

pub fn read_answer(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(reader);
    let body = read_body(reader, &headers);
    Answer { status, headers, body }
}
