//! Recognises the items of a response. The same item arrives up to four times: when it is added, by its pieces, when it
//! is done, and in the list of the completed response.
//!
//! Endpoints differ in what they repeat: ids may change from event to event and places may be missing, but calls keep
//! their `call_id`. An item that arrives again must never become a second block.

use serde_json::Value;

/// What an item becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Call,
    Reasoning,
}

impl Kind {
    /// The kind of an item; none for kinds that this version does not know.
    pub(super) fn of(item: &Value) -> Option<Self> {
        match item.get("type").and_then(Value::as_str)? {
            "message" => Some(Self::Message),
            "function_call" => Some(Self::Call),
            "reasoning" => Some(Self::Reasoning),
            _ => None,
        }
    }
}

/// An item that has a block.
pub(super) struct Item {
    place: Option<u64>,
    kind: Kind,
    pub(super) block: usize,
    pub(super) summary: u64,
    id: String,
    call_id: String,
    /// True once it arrived as done: what comes without a place belongs to another one.
    pub(super) done: bool,
    /// True once the completed response named it, so that two equal calls are not taken for one.
    settled: bool,
}

/// The items of a response so far.
#[derive(Default)]
pub(super) struct Items {
    list: Vec<Item>,
}

impl Items {
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut Item> {
        self.list.get_mut(position)
    }

    /// True when there are items and all arrived as done.
    pub(super) fn all_done(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(|item| item.done)
    }

    /// Notes an item under its block.
    pub(super) fn add(&mut self, place: Option<u64>, kind: Kind, block: usize, item: &Value) -> usize {
        let (id, call_id) = (field(item, "id").to_owned(), field(item, "call_id").to_owned());
        self.list.push(Item { place, kind, block, summary: 0, id, call_id, done: false, settled: false });
        self.list.len() - 1
    }

    /// The item that a piece belongs to. Without a place it is the newest of its kind.
    pub(super) fn for_piece(&self, kind: Kind, place: Option<u64>, id: &str) -> Option<usize> {
        self.position(|item| item.kind == kind && !id.is_empty() && item.id == id)
            .or_else(|| self.position(|item| item.kind == kind && (place.is_none() || item.place == place)))
    }

    /// The item that arrived before, by identity and then by place.
    pub(super) fn known(&self, kind: Kind, place: Option<u64>, told: &Value) -> Option<usize> {
        let fits = |item: &Item| item.kind == kind && !differs(item, told);
        self.by_identity(kind, place, told)
            .or_else(|| self.position(|item| fits(item) && place.is_some() && item.place == place))
            .or_else(|| {
                let vague = |item: &Item| place.is_none() || item.place.is_none();
                self.position(|item| fits(item) && vague(item) && !item.done)
            })
    }

    /// The item that the completed response lists at `place`. `same` compares the content of a block: places move when
    /// an endpoint leaves items out of its list.
    pub(super) fn listed(
        &mut self,
        kind: Kind,
        place: u64,
        told: &Value,
        same: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let open = |item: &Item| item.kind == kind && !item.settled && !differs(item, told);
        let named =
            |item: &Item| open(item) && !item.call_id.is_empty() && item.call_id == field(told, "call_id");
        let found = self
            .list
            .iter()
            .position(|item| named(item) && item.place == Some(place))
            .or_else(|| self.list.iter().position(named))
            .or_else(|| self.by_identity(kind, None, told))
            .or_else(|| self.list.iter().position(|item| open(item) && item.place == Some(place)))
            .or_else(|| self.list.iter().position(|item| open(item) && same(item.block)))
            // One block may hold several messages whose pieces named no place.
            .or_else(|| {
                let merged = |item: &Item| item.kind == Kind::Message && item.place.is_none();
                self.list.iter().position(|item| kind == Kind::Message && merged(item) && same(item.block))
            });
        if let Some(item) = found.and_then(|position| self.list.get_mut(position)) {
            item.settled = true;
        }
        found
    }

    /// An item under the same `call_id` or id. Some endpoints give one id to several calls: two places are two items.
    pub(super) fn by_identity(&self, kind: Kind, place: Option<u64>, told: &Value) -> Option<usize> {
        let (id, call_id) = (field(told, "id"), field(told, "call_id"));
        let apart = |item: &Item| place.is_some() && item.place.is_some() && item.place != place;
        let could_be = |item: &Item| item.kind == kind && !apart(item);
        self.position(|item| could_be(item) && !call_id.is_empty() && item.call_id == call_id).or_else(|| {
            self.position(|item| could_be(item) && !id.is_empty() && item.id == id && !differs(item, told))
        })
    }

    /// The newest item that fits.
    fn position(&self, fits: impl Fn(&Item) -> bool) -> Option<usize> {
        self.list.iter().rposition(fits)
    }
}

/// True when both name a `call_id` and these are not the same.
fn differs(item: &Item, told: &Value) -> bool {
    let call_id = field(told, "call_id");
    !item.call_id.is_empty() && !call_id.is_empty() && item.call_id != call_id
}

/// A text field of an item; empty when it is missing.
pub(super) fn field<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}
