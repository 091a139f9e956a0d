//! Reads what an images endpoint answers: pictures in base64 or as addresses, and the ways in which endpoints say that a
//! prompt is refused, a quota is used up or a size is not made.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use qoder_core::images::{ImageFailure, ImageReply, MadeImage};
use qoder_types::Usage;
use serde_json::Value;

use crate::failure::excerpt;

/// Some servers leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a refusal means that a retry would not mend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It holds for good.
    Final(ImageFailure),
    /// The server does not know this field.
    Unknown(&'static str),
}

/// Words, in lower case, of codes and messages that refuse a prompt.
const REFUSED: [&str; 7] = [
    "moderation_blocked",
    "content_policy_violation",
    "content policy",
    "content_filter",
    "responsibleaipolicyviolation",
    "safety system",
    "safety_violation",
];

/// Words of those that say that an account is used up.
const USED_UP: [&str; 5] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing hard limit",
    "exceeded your current quota",
    "insufficient_balance",
];

/// The refusal that an answer means, when a retry would not mend it. `wished` are the fields that can be left out.
pub(crate) fn refusal(
    status: u16,
    body: &[u8],
    size: Option<&str>,
    wished: &[&'static str],
) -> Option<Refusal> {
    let is_success = (200..300).contains(&status);
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(_) if is_success => return None,
        Err(_) => Value::Null,
    };
    let error = value.get("error").filter(|error| !error.is_null());
    if is_success && error.is_none() {
        return None;
    }
    let error = error.unwrap_or(&value);
    let field = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let message = match error.as_str().or_else(|| error.get("message").and_then(Value::as_str)) {
        Some(message) => excerpt(message),
        None => excerpt(&String::from_utf8_lossy(body)),
    };
    let words = format!("{} {} {}", field("code"), field("type"), message.to_lowercase());
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let is_bad_request = is_success || matches!(status, 400 | 422);
    if (is_bad_request || status == 403) && says(&REFUSED) {
        return Some(Refusal::Final(ImageFailure::Refused(message)));
    }
    if status == 402 || says(&USED_UP) {
        return Some(Refusal::Final(ImageFailure::Quota(message)));
    }
    if status == 413 {
        return Some(Refusal::Final(ImageFailure::TooLarge(format!("the input picture: {message}"))));
    }
    if !is_bad_request {
        return None;
    }
    let parameter = field("param");
    if let Some(unknown) =
        wished.iter().find(|wish| parameter == **wish || (parameter.is_empty() && words.contains(**wish)))
    {
        return Some(Refusal::Unknown(unknown));
    }
    let names_size = parameter == "size"
        || (parameter.is_empty()
            && size.is_some_and(|size| words.contains(&size.to_lowercase()) || words.contains("size")));
    names_size.then_some(Refusal::Final(ImageFailure::BadSize(message)))
}

/// Reads pictures, at most `count`.
pub(crate) fn read_answer(body: &[u8], count: u32, place: &str) -> Result<ImageReply, ImageFailure> {
    let none = |why: String| ImageFailure::NotAnImage(format!("{place} {why}"));
    let value: Value = serde_json::from_slice(body).map_err(|_| {
        let start = excerpt(&String::from_utf8_lossy(body.get(..2_048).unwrap_or(body)));
        none(format!("answered with something that is not JSON: {start}"))
    })?;
    let entries = ["data", "images"].iter().find_map(|name| value.get(*name)?.as_array());
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut images = Vec::new();
    for entry in entries.into_iter().flatten().take(most) {
        images.push(picture(entry).map_err(&none)?);
    }
    if images.is_empty() {
        return Err(none(format!("answered without one: {}", excerpt(&value.to_string()))));
    }
    let revised = entries.into_iter().flatten().find_map(|entry| entry.get("revised_prompt")?.as_str());
    Ok(ImageReply {
        model: value.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        provider: String::new(),
        images,
        revised_prompt: revised.filter(|text| !text.trim().is_empty()).map(str::to_owned),
        usage: usage(&value),
        cost_usd: 0.0,
        duration_api_ms: 0,
    })
}

fn usage(value: &Value) -> Usage {
    let tokens = |name: &str| value.get("usage")?.get(name)?.as_u64();
    Usage {
        input_tokens: tokens("input_tokens").or_else(|| tokens("prompt_tokens")).unwrap_or(0),
        output_tokens: tokens("output_tokens").or_else(|| tokens("completion_tokens")).unwrap_or(0),
        ..Usage::default()
    }
}

/// One picture: bytes in base64, an address, or an address that is itself the bytes.
fn picture(entry: &Value) -> Result<MadeImage, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let encoded = text("b64_json").or_else(|| text("base64")).or_else(|| text("image"));
    if let Some(encoded) = encoded {
        return decode(encoded);
    }
    match text("url") {
        Some(url) if url.trim_start().starts_with("data:") => decode(url),
        Some(url) => Ok(MadeImage::Url(url.trim().to_owned())),
        None => Err(format!(
            "answered with an entry that is neither `b64_json` nor `url`: {}",
            excerpt(&entry.to_string())
        )),
    }
}

/// The bytes behind a base64 text or a `data:` address.
pub(crate) fn decode(text: &str) -> Result<MadeImage, String> {
    let encoded = match text.trim().strip_prefix("data:") {
        Some(rest) => rest.split_once(',').map_or("", |(_, encoded)| encoded),
        None => text.trim(),
    };
    let compact: Vec<u8> = encoded.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    match BASE64.decode(compact) {
        Ok(bytes) if !bytes.is_empty() => Ok(MadeImage::Bytes(Bytes::from(bytes))),
        Ok(_) => Err("answered with an empty picture".to_owned()),
        Err(error) => Err(format!("answered with a picture that is not base64: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISHED: [&str; 1] = ["response_format"];

    fn judged(status: u16, body: &str) -> Option<Refusal> {
        refusal(status, body.as_bytes(), Some("3x3"), &WISHED)
    }

    #[test]
    fn refusals_are_classed_by_what_they_mean() {
        for (status, body, code) in [
            (
                400,
                r#"{"error":{"code":"moderation_blocked","message":"Your request was rejected by the safety system."}}"#,
                "image_refused",
            ),
            (
                400,
                r#"{"error":{"code":"content_policy_violation","message":"no","type":"image_generation_user_error"}}"#,
                "image_refused",
            ),
            (200, r#"{"error":{"message":"blocked by our content policy"}}"#, "image_refused"),
            (
                429,
                r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
                "image_quota",
            ),
            (
                400,
                r#"{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached"}}"#,
                "image_quota",
            ),
            (402, "no money", "image_quota"),
            (400, r#"{"error":{"param":"size","message":"Invalid value: '3x3'."}}"#, "image_bad_size"),
            (422, r#"{"detail":"3x3 is not supported"}"#, "image_bad_size"),
            (413, "<html>", "image_too_large"),
        ] {
            match judged(status, body) {
                Some(Refusal::Final(failed)) => assert_eq!(failed.code(), code, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        let unknown =
            r#"{"error":{"message":"Unknown parameter: 'response_format'.","param":"response_format"}}"#;
        assert_eq!(judged(400, unknown), Some(Refusal::Unknown("response_format")));
        assert_eq!(refusal(400, unknown.as_bytes(), None, &[]), None, "it was not sent");
        for (status, body) in [
            (429, r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#),
            (500, r#"{"error":{"message":"oops"}}"#),
            (401, r#"{"error":{"code":"invalid_api_key","message":"bad key"}}"#),
            (400, r#"{"error":{"param":"quality","message":"Invalid value: 'x'."}}"#),
            (200, r#"{"data":[],"error":null}"#),
        ] {
            assert_eq!(judged(status, body), None, "{body}");
        }
    }

    #[test]
    fn pictures_come_in_several_forms() {
        let read = |body: &str| read_answer(body.as_bytes(), 2, "host");
        let bytes = MadeImage::Bytes(Bytes::from_static(b"picture"));
        for body in [
            r#"{"data":[{"b64_json":"cGljdHVyZQ=="}]}"#,
            r#"{"data":[{"b64_json":"cGlj\ndHVyZQ"}]}"#,
            r#"{"images":[{"url":"data:image/png;base64,cGljdHVyZQ=="}]}"#,
        ] {
            assert_eq!(read(body).unwrap().images, std::slice::from_ref(&bytes), "{body}");
        }
        let reply = read(
            r#"{"created":1,"data":[{"url":"https://a.example/1","revised_prompt":"a cat"},{"url":"b"},{"url":"c"}],
                "usage":{"input_tokens":3,"output_tokens":4}}"#,
        )
        .unwrap();
        assert_eq!((reply.images.len(), reply.revised_prompt.as_deref()), (2, Some("a cat")));
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (3, 4));
    }

    #[test]
    fn an_answer_without_a_picture_is_named_as_that() {
        for body in [
            "",
            "<html>",
            "{}",
            "[]",
            "null",
            r#"{"data":null}"#,
            r#"{"data":[]}"#,
            r#"{"data":[{}]}"#,
            r#"{"data":["x"]}"#,
            r#"{"data":[{"b64_json":"%%%"}]}"#,
            r#"{"data":[{"url":"data:image/png"}]}"#,
        ] {
            let failed = read_answer(body.as_bytes(), 1, "host").unwrap_err();
            assert_eq!(failed.code(), "image_not_an_image", "{body}");
            assert!(failed.to_string().contains("host"), "{failed}");
        }
    }
}
