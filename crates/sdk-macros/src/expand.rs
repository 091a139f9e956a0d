//! Writes the expansion of `#[tool]`: a function of the same name and visibility that returns the tool, with the
//! annotated function inside it. The description is the doc comment, because that is where people look for it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, FnArg, ItemFn, Lit, Meta, Token};

use crate::arguments::Arguments;

/// The function that returns the tool.
pub fn expand(arguments: &Arguments, function: &ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(syn::Error::new_spanned(signature, "a tool is an async function"));
    }
    if !signature.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&signature.generics, "a tool has no generic parameters"));
    }
    if let Some(receiver) = signature.inputs.iter().find(|input| matches!(input, FnArg::Receiver(_))) {
        return Err(syn::Error::new_spanned(
            receiver,
            "a tool is a free function; give state through a static",
        ));
    }
    if signature.inputs.len() > 2 {
        return Err(syn::Error::new_spanned(
            &signature.inputs,
            "a tool takes its arguments and, if it wants, a ToolContext",
        ));
    }
    let name = &signature.ident;
    let visibility = &function.vis;
    let (docs, others): (Vec<&Attribute>, Vec<&Attribute>) =
        function.attrs.iter().partition(|attribute| attribute.path().is_ident("doc"));
    let tool_name = arguments.name.as_ref().map_or_else(|| name.to_string(), syn::LitStr::value);
    let description = match &arguments.description {
        Some(text) => text.value(),
        None => doc_text(&docs),
    };
    if description.is_empty() {
        return Err(syn::Error::new_spanned(
            name,
            "a tool needs a description for the model: write a doc comment that says when to use it, what it does and what it returns",
        ));
    }
    let annotations = annotations(arguments);
    let (inputs, output, block) = (&signature.inputs, &signature.output, &function.block);
    let handler =
        if inputs.is_empty() { quote!(|_: ::qoder_agent_sdk::NoArguments| #name()) } else { quote!(#name) };
    let checked = checked_arguments(inputs);
    Ok(quote! {
        #(#docs)*
        #visibility fn #name() -> ::qoder_agent_sdk::SdkMcpTool {
            #checked
            #(#others)*
            async fn #name(#inputs) #output #block
            ::qoder_agent_sdk::tool(#tool_name, #description, #handler).with_annotations(#annotations)
        }
    })
}

/// A demand on the argument type alone, at its place in the source: the compiler's words about the whole function would
/// not name what is missing.
fn checked_arguments(inputs: &Punctuated<FnArg, Token![,]>) -> Option<TokenStream> {
    let Some(FnArg::Typed(first)) = inputs.first() else { return None };
    let argument = &first.ty;
    Some(quote_spanned! { argument.span() =>
        const _: fn() = || {
            fn needs_derives<A: ::qoder_agent_sdk::ToolArguments>() {}
            needs_derives::<#argument>();
        };
    })
}

fn annotations(arguments: &Arguments) -> TokenStream {
    let title = arguments.title.iter();
    let hints = arguments.hints.iter().map(|(name, value)| quote!(.#name(#value)));
    let most = arguments.max_result_size_chars.iter();
    quote! {
        ::qoder_agent_sdk::ToolAnnotations::default()
            #(.title(#title))*
            #(#hints)*
            #(.max_result_size_chars(#most))*
    }
}

/// The lines of a doc comment, each without the space that writing it adds.
fn doc_text(docs: &[&Attribute]) -> String {
    let lines: Vec<String> = docs
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            Meta::Path(_) | Meta::List(_) => None,
        })
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}
