//! The attribute `#[tool]`: an async function with a documented argument type becomes a function that returns the
//! tool. What the attribute accepts is read in `arguments`; what it writes is written in `expand`. Mistakes are
//! reported at their place in the source.

mod arguments;
mod expand;

use proc_macro::TokenStream;

/// Turns an async function into a tool. See the documentation of `qoder_agent_sdk::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = syn::parse_macro_input!(attribute as arguments::Arguments);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    expand::expand(&arguments, &function).unwrap_or_else(|error| error.to_compile_error()).into()
}
