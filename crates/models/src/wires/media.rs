//! Images and documents as the profile of a server takes them. Where it takes none, a text says that there was one, so
//! that the conversation stays whole and the model does not invent what it saw.

use std::borrow::Cow;

use qoder_types::{ContentBlock, ToolResultContent};

use crate::profile::{Images, Profile};

/// The text that replaces an image that is not sent.
const NO_IMAGE: &str = "[An image was here. It was left out because this model does not take images.]";
/// The text that replaces a document that is not sent.
const NO_DOCUMENT: &str = "[A document was here. It was left out because this model takes text alone.]";
/// The text of a result whose image is in the message behind it.
pub(crate) const FOLLOWS: &str = "(the image follows)";
/// The text that replaces the empty result of a tool where an empty text is refused.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// True for what a model that takes text alone refuses.
pub(crate) fn is_media(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Image { .. } | ContentBlock::Document { .. } => true,
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Unknown(_) => false,
    }
}

/// A block as it is sent.
pub(crate) fn for_model<'a>(block: &'a ContentBlock, profile: &Profile) -> Cow<'a, ContentBlock> {
    if profile.images != Images::None {
        return Cow::Borrowed(block);
    }
    match block {
        ContentBlock::Image { .. } => Cow::Owned(ContentBlock::text(NO_IMAGE)),
        ContentBlock::Document { .. } => Cow::Owned(ContentBlock::text(NO_DOCUMENT)),
        other => Cow::Borrowed(other),
    }
}

/// The images and documents of a result.
pub(crate) fn images_of(content: &ToolResultContent) -> impl Iterator<Item = &ContentBlock> {
    let blocks = match content {
        ToolResultContent::Blocks(blocks) => blocks.as_slice(),
        ToolResultContent::Text(_) => &[],
    };
    blocks.iter().filter(|block| is_media(block))
}

/// The content of a result as it is sent in the result itself.
pub(crate) fn result_for<'a>(
    content: &'a ToolResultContent,
    profile: &Profile,
) -> Cow<'a, ToolResultContent> {
    let ToolResultContent::Blocks(blocks) = content else { return Cow::Borrowed(content) };
    if profile.images == Images::Everywhere || !blocks.iter().any(is_media) {
        return Cow::Borrowed(content);
    }
    let mut kept: Vec<ContentBlock> = blocks
        .iter()
        .filter(|block| profile.images == Images::None || !is_media(block))
        .map(|block| for_model(block, profile).into_owned())
        .collect();
    if kept.is_empty() {
        kept.push(ContentBlock::text(FOLLOWS));
    }
    Cow::Owned(ToolResultContent::Blocks(kept))
}
