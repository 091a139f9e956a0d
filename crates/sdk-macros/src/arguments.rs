//! The arguments of `#[tool(…)]`: `name`, `title` and `description` with a text, the hints as words
//! or with a boolean, and `max_result_size_chars` with a number. Anything else is an error that lists what is accepted.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitBool, LitInt, LitStr, Token};

const ACCEPTED: &str = "accepted are name = \"…\", title = \"…\", description = \"…\", read_only, destructive, \
                        idempotent, open_world and max_result_size_chars = N";

/// What the attribute says.
#[derive(Default)]
pub struct Arguments {
    /// The tool's name; the function's own otherwise.
    pub name: Option<LitStr>,
    /// For people.
    pub title: Option<LitStr>,
    /// For the model; the doc comment otherwise.
    pub description: Option<LitStr>,
    /// The hints, by the name of the field that holds them.
    pub hints: Vec<(Ident, bool)>,
    /// How long a result may be.
    pub max_result_size_chars: Option<LitInt>,
}

struct Entry {
    key: Ident,
    value: Option<syn::Lit>,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        Ok(Self { key, value })
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        for entry in Punctuated::<Entry, Token![,]>::parse_terminated(input)? {
            arguments.take(entry)?;
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn take(&mut self, entry: Entry) -> syn::Result<()> {
        let Entry { key, value } = entry;
        let word = key.to_string();
        match (word.as_str(), value) {
            ("name", Some(syn::Lit::Str(text))) => self.name = Some(text),
            ("title", Some(syn::Lit::Str(text))) => self.title = Some(text),
            ("description", Some(syn::Lit::Str(text))) => self.description = Some(text),
            ("max_result_size_chars", Some(syn::Lit::Int(number))) => {
                self.max_result_size_chars = Some(number);
            }
            ("read_only" | "destructive" | "idempotent" | "open_world", None) => self.hints.push((key, true)),
            (
                "read_only" | "destructive" | "idempotent" | "open_world",
                Some(syn::Lit::Bool(LitBool { value, .. })),
            ) => self.hints.push((key, value)),
            _ => return Err(syn::Error::new(key.span(), format!("`{word}` cannot be used so; {ACCEPTED}"))),
        }
        Ok(())
    }
}
