//! Who is asked: the provider behind a route, by the name that the GenAI conventions of OpenTelemetry give it. The host
//! says it, then the name that the provider has in the settings, then the protocol that is spoken. The name of
//! a model says nothing: models are served by others than those who made them.

use crate::protocol::Protocol;

/// Hosts, and their ends, of providers that the conventions know.
const HOSTS: [(&str, &str); 18] = [
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    (".cognitiveservices.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    (".models.ai.azure.com", "azure.ai.inference"),
    (".inference.ai.azure.com", "azure.ai.inference"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    (".ml.cloud.ibm.com", "ibm.watsonx.ai"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("-aiplatform.googleapis.com", "gcp.vertex_ai"),
];

/// What people call providers that the conventions know, and our own gateway.
const NAMES: [(&str, &str); 19] = [
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("azure", "azure.ai.openai"),
    ("azure-openai", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("aws-bedrock", "aws.bedrock"),
    ("gemini", "gcp.gemini"),
    ("google", "gcp.gen_ai"),
    ("vertex", "gcp.vertex_ai"),
    ("vertex-ai", "gcp.vertex_ai"),
    ("watsonx", "ibm.watsonx.ai"),
    ("cohere", "cohere"),
    ("deepseek", "deepseek"),
    ("groq", "groq"),
    ("mistral", "mistral_ai"),
    ("perplexity", "perplexity"),
    ("xai", "x_ai"),
    ("grok", "x_ai"),
    ("qoder", "qoder"),
];

/// The provider at `host`, which is called `name` here and speaks `protocol`.
pub(crate) fn of(host: &str, name: &str, protocol: Protocol) -> &'static str {
    let host = host.to_ascii_lowercase();
    let fits = |known: &str| match known.starts_with(['.', '-']) {
        true => host.ends_with(known),
        false => host == known,
    };
    if let Some((_, provider)) = HOSTS.iter().find(|(known, _)| fits(known)) {
        return provider;
    }
    // Its hosts have the name in front and the region in the middle.
    if host.starts_with("bedrock-") && host.ends_with(".amazonaws.com") {
        return "aws.bedrock";
    }
    let name = name.to_ascii_lowercase();
    if let Some((_, provider)) = NAMES.iter().find(|(known, _)| *known == name) {
        return provider;
    }
    match protocol {
        Protocol::AnthropicMessages => "anthropic",
        Protocol::OpenAiChat | Protocol::OpenAiResponses => "openai",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_says_who_is_asked_then_the_settings_then_the_protocol() {
        for (host, name, expected) in [
            ("API.openai.com", "mine", "openai"),
            ("us-central1-aiplatform.googleapis.com", "openai", "gcp.vertex_ai"),
            ("mine.openai.azure.com", "openai", "azure.ai.openai"),
            ("bedrock-runtime.eu-west-1.amazonaws.com", "x", "aws.bedrock"),
            ("notapi.openai.com.example.test", "x", "openai"),
            ("127.0.0.1", "DeepSeek", "deepseek"),
            ("gateway.example.test", "qoder", "qoder"),
            ("gateway.example.test", "mine", "openai"),
        ] {
            assert_eq!(of(host, name, Protocol::OpenAiChat), expected, "{host} {name}");
        }
        assert_eq!(of("127.0.0.1", "flags", Protocol::AnthropicMessages), "anthropic");
        assert_eq!(of("api.deepseek.com", "flags", Protocol::AnthropicMessages), "deepseek");
    }
}
