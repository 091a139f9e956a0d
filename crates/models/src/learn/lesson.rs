//! From the words of a refusal to the change of the profile that avoids it. Each kind of refusal is one function; the
//! first that recognises its words and changes something wins.

use qoder_core::ports::ModelRequest;
use qoder_types::{ContentBlock, MessageContent};
use serde_json::Value;

use super::field::{mention, refused};
use crate::profile::{Images, NameForm, OutputLimit, Profile, ReasoningBack, SystemRole, keep_words};
use crate::protocol::Protocol;
use crate::wires::media;

/// Something to do otherwise from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lesson {
    /// What it is about; a lesson of one name is learned once.
    pub(crate) name: String,
    /// For people, behind "the request was sent again": "without `store`".
    pub(crate) how: String,
    /// The profile with it.
    pub(crate) profile: Profile,
}

/// A request that was refused, and in which words.
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    pub(crate) protocol: Protocol,
    pub(crate) request: &'a ModelRequest,
    /// The output limit, where one was sent.
    pub(crate) max_tokens: Option<u64>,
}

type Rule = fn(&Refusal<'_>, &str, &Profile) -> Option<(String, String, Profile)>;

/// In this order: those with the clearest words come first.
const RULES: [Rule; 10] = [
    sealed_reasoning,
    missing_reasoning,
    images,
    call_ids,
    roles,
    schema_keywords,
    output_limit,
    contents,
    cache_marks,
    fields,
];

/// What the refusal teaches; none when it names nothing that could be left out.
pub(crate) fn from_refusal(refusal: &Refusal<'_>, profile: &Profile) -> Option<Lesson> {
    // Servers of local models refuse images as an error of their own, and routers as a model that does not exist.
    if !matches!(refusal.status, 400 | 404 | 422 | 500 | 501) {
        return None;
    }
    let lower = refusal.body.to_ascii_lowercase();
    RULES.iter().find_map(|rule| {
        let (name, how, changed) = rule(refusal, &lower, profile)?;
        (changed != *profile).then_some(Lesson { name, how, profile: changed })
    })
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn is_client_error(refusal: &Refusal<'_>) -> bool {
    matches!(refusal.status, 400 | 422)
}

/// The profile that does not send these fields either.
fn without(profile: &Profile, fields: &[&str]) -> Profile {
    let mut all = profile.never_sent.to_vec();
    all.extend(fields.iter().filter(|field| profile.sends(field)).copied().map(crate::profile::keep_word));
    Profile { never_sent: keep_words(&all), ..*profile }
}

fn sealed_reasoning(
    refusal: &Refusal<'_>,
    lower: &str,
    profile: &Profile,
) -> Option<(String, String, Profile)> {
    let sealed = has(lower, &["invalid_encrypted_content"])
        || (lower.contains("encrypted content") && has(lower, &["could not be", "verified", "decrypt"]));
    if sealed {
        let how = "without the reasoning that another provider encrypted".to_owned();
        return Some(("encrypted_content".into(), how, without(profile, &["encrypted_content"])));
    }
    let signed = lower.contains("signature")
        && (lower.contains("thinking") || refusal.protocol == Protocol::AnthropicMessages)
        && has(lower, &["invalid", "required", "missing", "not valid", "could not"]);
    signed.then(|| {
        let changed = Profile { unsigned_reasoning: false, ..without(profile, &["signature"]) };
        ("signature".into(), "without the reasoning that another provider signed".into(), changed)
    })
}

fn missing_reasoning(_: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    let missing = lower.contains("reasoning_content") && has(lower, &["must be passed back", "missing"]);
    missing.then(|| {
        let reasoning = ReasoningBack::ReasoningContent;
        let changed = Profile { reasoning, reasoning_required: true, ..*profile };
        ("reasoning_required".into(), "with `reasoning_content` in every message with calls".into(), changed)
    })
}

fn images(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    let about = has(lower, &["image", "multimodal", "multi-modal", "vision", "mmproj"]);
    let refuses = has(
        lower,
        &[
            "not support",
            "unsupported",
            "does not accept",
            "not accept",
            "unknown variant",
            "text-only",
            "text only",
            "not multimodal",
            "not a multimodal",
            "no endpoints found",
            "cannot process",
            "expected `text`",
            "not enabled",
            "not allowed",
            "must be a string",
            "only text",
            "invalid content type",
        ],
    );
    (about && refuses && holds_media(refusal.request)).then(|| {
        let changed = Profile { images: Images::None, ..*profile };
        ("images".into(), "with a text in place of every image".into(), changed)
    })
}

fn holds_media(request: &ModelRequest) -> bool {
    request.messages.iter().any(|prompt| match &prompt.message.content {
        MessageContent::Text(_) => false,
        MessageContent::Blocks(blocks) => blocks.iter().any(|block| match block {
            ContentBlock::ToolResult { content, .. } => media::images_of(content).next().is_some(),
            other => media::is_media(other),
        }),
    })
}

fn call_ids(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    let about = has(lower, &["tool call id", "tool_call_id", "tool call ids", "tool_use.id", "call_id"]);
    if !about || !is_client_error(refusal) {
        return None;
    }
    let form = if has(lower, &["length of 9", "exactly 9"]) {
        NameForm { shortest: 9, longest: 9, further: "" }
    } else if has(lower, &["^[a-za-z0-9_-]+$", "pattern"]) {
        NameForm { further: "_-", ..profile.call_ids }
    } else if let Some(longest) = number_behind(lower, &["maximum length", "at most", "max length"]) {
        NameForm { longest: usize::try_from(longest).ok()?.max(8), ..profile.call_ids }
    } else {
        return None;
    };
    Some((
        "call_ids".into(),
        "with ids of calls in the form that it takes".into(),
        Profile { call_ids: form, ..*profile },
    ))
}

fn roles(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    // Chat templates raise their own errors, which some servers pass on as 500.
    if refusal.status == 404 {
        return None;
    }
    if has(lower, &["after role 'tool'", "after role \"tool\"", "after role tool", "after role \\\"tool\\\""])
    {
        let changed = Profile { user_after_tool: false, ..*profile };
        return Some((
            "user_after_tool".into(),
            "with an assistant message behind tool results".into(),
            changed,
        ));
    }
    if has(
        lower,
        &["roles must alternate", "must alternate between", "should alternate", "alternate user/assistant"],
    ) {
        let changed = Profile { roles_alternate: true, ..*profile };
        return Some(("roles_alternate".into(), "with messages of one role in a row as one".into(), changed));
    }
    let is_role = lower.contains("developer") && has(lower, &["role", "not one of", "unknown variant"]);
    (is_role && profile.system_role == SystemRole::Developer).then(|| {
        let changed = Profile { system_role: SystemRole::System, ..*profile };
        ("system_role".into(), "with the role `system`".into(), changed)
    })
}

/// Keywords of schemas that servers are known to refuse.
const KEYWORDS: [&str; 24] = [
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "$comment",
    "definitions",
    "additionalProperties",
    "const",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "multipleOf",
    "patternProperties",
    "propertyNames",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
    "unevaluatedProperties",
    "dependentRequired",
];

fn schema_keywords(
    refusal: &Refusal<'_>,
    lower: &str,
    profile: &Profile,
) -> Option<(String, String, Profile)> {
    let about = has(lower, &["function_declarations", "schema", "parameters", "tools"]);
    let refuses =
        has(lower, &["unknown name", "unsupported", "not supported", "not permitted", "unknown field"]);
    if !about || !refuses || !is_client_error(refusal) {
        return None;
    }
    let schemas: String = refusal.request.tools.iter().map(|tool| tool.input_schema.to_string()).collect();
    let named: Vec<&str> = KEYWORDS
        .into_iter()
        .filter(|word| refusal.body.contains(&format!("\"{word}\\\"")) || quoted(refusal.body, word))
        .filter(|word| schemas.contains(&format!("\"{word}\":")))
        .collect();
    if named.is_empty() {
        return None;
    }
    let mut all = profile.refused_schema_keywords.to_vec();
    all.extend(named.iter().filter(|word| !profile.refused_schema_keywords.contains(word)));
    let how = format!("without {} in the schemas of tools", list(&named));
    Some((
        format!("schema {named:?}"),
        how,
        Profile { refused_schema_keywords: keep_words(&all), ..*profile },
    ))
}

fn quoted(body: &str, word: &str) -> bool {
    ['\'', '"', '`'].iter().any(|quote| body.contains(&format!("{quote}{word}{quote}")))
        || body.contains(&format!("\\\"{word}\\\""))
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<String>>().join(", ")
}

/// Names of the field that limits the output.
const LIMITS: [&str; 4] = ["max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_tokens"];

fn output_limit(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    let sent = refusal.max_tokens?;
    let named: Vec<&str> = LIMITS.into_iter().filter(|name| mention(lower, name).is_some()).collect();
    if named.is_empty() || !is_client_error(refusal) {
        return None;
    }
    let is_chat = refusal.protocol == Protocol::OpenAiChat;
    let is_field =
        has(lower, &["unsupported parameter", "not supported", "unrecognized", "not permitted", "unknown"]);
    if is_chat && is_field {
        // The one that it wants is named beside the one that it refuses.
        let other = match profile.output_limit {
            OutputLimit::MaxCompletionTokens => OutputLimit::MaxTokens,
            OutputLimit::MaxTokens | OutputLimit::ByModel => OutputLimit::MaxCompletionTokens,
            OutputLimit::None => return None,
        };
        let wanted = if named.len() > 1 { other } else { OutputLimit::None };
        let how = match wanted {
            OutputLimit::MaxCompletionTokens => "with `max_completion_tokens`",
            OutputLimit::MaxTokens => "with `max_tokens`",
            OutputLimit::ByModel | OutputLimit::None => "without an output limit",
        };
        let changed = Profile { output_limit: wanted, ..*profile };
        return Some((format!("output_limit {wanted:?}"), how.into(), changed));
    }
    // What counts is the room behind the input, which the server knows best.
    let about_window = has(lower, &["context l", "context window", "input tokens", "prompt contains"]);
    if about_window {
        let changed = Profile { output_limit: OutputLimit::None, ..*profile };
        return is_chat.then(|| ("output_limit None".into(), "without an output limit".into(), changed));
    }
    let limit = numbers(lower).filter(|number| (16..sent).contains(number)).max()?;
    let changed = Profile { most_output_tokens: Some(limit), ..*profile };
    Some((format!("most_output_tokens {limit}"), format!("with at most {limit} output tokens"), changed))
}

fn contents(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    if !lower.contains("content") || !is_client_error(refusal) {
        return None;
    }
    let null = has(
        lower,
        &[
            "none is not an allowed value",
            "got null",
            "expected a string, got null",
            "must be a string",
            "not be null",
            "cannot be null",
            "should be a valid string",
            "invalid type: null",
        ],
    );
    if null && profile.null_content {
        let changed = Profile { null_content: false, ..*profile };
        return Some(("null_content".into(), "with an empty text in place of `null`".into(), changed));
    }
    let empty = has(
        lower,
        &[
            "must be non-empty",
            "must not be empty",
            "non-empty content",
            "content is empty",
            "cannot be empty",
            "non-whitespace",
        ],
    );
    empty.then(|| {
        let changed = Profile { empty_text: false, ..*profile };
        ("empty_text".into(), "without empty texts".into(), changed)
    })
}

fn cache_marks(refusal: &Refusal<'_>, lower: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    let inside = has(lower, &["system.", "tools.", "system[", "tools["]) && lower.contains("cache_control");
    (inside && is_client_error(refusal)).then(|| {
        let changed = Profile { cache_marks: false, ..without(profile, &["cache_control"]) };
        ("cache_marks".into(), "without marks for the cache".into(), changed)
    })
}

/// Fields that requests and their messages have by themselves, and that can be left out.
const FIELDS: [&str; 18] = [
    "stream_options",
    "reasoning_effort",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "encrypted_content",
    "prompt_cache_key",
    "cache_control",
    "output_config",
    "max_output_tokens",
    "max_completion_tokens",
    "max_tokens",
    "include",
    "store",
    "thinking",
    "reasoning",
    "signature",
];

fn fields(refusal: &Refusal<'_>, _: &str, profile: &Profile) -> Option<(String, String, Profile)> {
    if !is_client_error(refusal) {
        return None;
    }
    let needed = refusal.protocol == Protocol::AnthropicMessages;
    let own = FIELDS.into_iter().filter(|field| !needed || *field != "max_tokens");
    let asked = refusal.request.parameters.keys().map(String::as_str);
    let sent: Vec<&str> = own.chain(asked).filter(|field| profile.sends(field)).collect();
    let field = refused(refusal.body, &sent)?;
    let meant = meant_by(refusal.protocol, &field);
    let how = meant.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(" and ");
    Some((field.to_owned(), format!("without {how}"), without(profile, meant)))
}

/// The fields of this protocol that a refusal is about. Gateways name the field of the protocol that they translate to.
fn meant_by<'a>(protocol: Protocol, field: &'a &'a str) -> &'a [&'a str] {
    match (protocol, *field) {
        (Protocol::AnthropicMessages, "reasoning" | "reasoning_effort") => &["thinking", "output_config"],
        (Protocol::OpenAiChat, "reasoning" | "thinking" | "output_config") => &["reasoning_effort"],
        (Protocol::OpenAiResponses, "reasoning_effort" | "thinking" | "output_config") => &["reasoning"],
        (Protocol::AnthropicMessages | Protocol::OpenAiChat | Protocol::OpenAiResponses, _) => {
            std::slice::from_ref(field)
        }
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

fn number_behind(text: &str, words: &[&str]) -> Option<u64> {
    words.iter().find_map(|word| numbers(text.get(text.find(word)? + word.len()..)?).next())
}

/// The words of the error, for people.
pub(crate) fn words_of(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let message = value.pointer("/error/message").or_else(|| value.get("message")).and_then(Value::as_str);
    crate::failure::excerpt(message.unwrap_or(body))
}
