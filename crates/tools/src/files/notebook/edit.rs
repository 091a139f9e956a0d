//! The NotebookEdit tool: replaces, inserts or deletes one cell of a notebook.
//!
//! As with Edit the notebook must have been read and be unchanged. Everything but the cell stays as it was, byte for
//! byte, and the file is replaced in one step.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::ReplayClass;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::blocking::change;
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, refusal};
use crate::call::schema::path_field;
use crate::files::atomic::Place;
use crate::files::edit::{require_read, require_unchanged};
use crate::files::notebook::text::{Notebook, new_cell, source_lines};
use crate::files::open;
use crate::files::paths;
use crate::files::restore::keep_before;

/// Changes one cell of a Jupyter notebook (.ipynb file).
///
/// - The notebook must have been read with Read in this conversation, and must not have changed since.
/// - `replace` gives the cell `cell_id` a new source; the outputs of a code cell are cleared, because they belong to the
///   old source. `insert` puts a new cell behind the cell `cell_id`, or at the start without one, and needs
///   `cell_type`. `delete` removes the cell and ignores `new_source`.
/// - `cell_id` is the id of the cell or its number as Read shows it: `cell-1` or `1` is the first cell.
/// - Everything else in the notebook stays as it is. The cells are not run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NotebookEditInput {
    /// Absolute path of the notebook.
    notebook_path: String,
    /// The new source of the cell.
    new_source: String,
    /// The id of the cell, or its number as Read shows it.
    cell_id: Option<CellId>,
    /// What the cell is; needed for `insert`.
    cell_type: Option<CellType>,
    /// What to do. Default `replace`.
    edit_mode: Option<EditMode>,
}

/// Models write the number of a cell as a number as well as a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CellId {
    Text(String),
    Number(u64),
}

impl JsonSchema for CellId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CellId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["string", "integer"] })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellType {
    Code,
    Markdown,
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

/// See [`NotebookEditInput`].
#[derive(Debug)]
pub(crate) struct NotebookEditTool;

impl BuiltIn for NotebookEditTool {
    const NAME: &'static str = "NotebookEdit";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: false, replay: ReplayClass::Effectful };
    type Input = NotebookEditInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        match path_field(input, "notebook_path") {
            Some(path) => vec![Access::Read(path.clone()), Access::Edit(path)],
            None => vec![Access::Other],
        }
    }

    async fn run(self: Arc<Self>, input: NotebookEditInput, context: ToolContext) -> ToolOutcome {
        let size = open::size_hint(&context.cwd, &input.notebook_path);
        change(size, move || edit(&input, &context).unwrap_or_else(|refusal| *refusal)).await
    }
}

fn edit(input: &NotebookEditInput, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let path = paths::resolve(&context.cwd, &input.notebook_path)
        .map_err(|error| refusal(format!("Cannot edit: {error}.")))?;
    let shown = path.lexical.as_path();
    if shown.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("ipynb")) {
        return Err(refusal(format!(
            "{} is no notebook (.ipynb). Use Edit for other files.",
            shown.display()
        )));
    }
    let (mut file, metadata) = open::open_regular(&path.real, shown).map_err(|error| error.refusal())?;
    let observed = require_read(context, &path)?;
    let bytes = open::read_all(&mut file, &metadata, shown).map_err(|error| error.refusal())?;
    require_unchanged(&bytes, &observed, shown)?;
    let notebook = Notebook::parse(&bytes, shown)?;
    let done = apply(input, &notebook, shown)?;
    let content = done.content.as_bytes();
    keep_before(context, &path, Some((&bytes, &metadata)), content)?;
    let written = Place::open(&path.real, shown)
        .and_then(|place| place.replace(content, Some(&metadata)))
        .map_err(|error| error.refusal())?;
    let text = format!("{} in {}.", done.text, shown.display());
    let mut structured = json!({ "success": true, "notebook_path": shown, "cell_number": done.number });
    if let Some(id) = done.id {
        structured["cell_id"] = json!(id);
    }
    let mut outcome = ToolOutcome::completed(text, structured);
    outcome.observations.push(open::observation(
        &path.real,
        &written,
        content.len() as u64,
        open::sha256(content),
    ));
    Ok(outcome)
}

/// What was done to which cell.
struct Done {
    text: String,
    number: usize,
    id: Option<String>,
    content: String,
}

fn apply(input: &NotebookEditInput, notebook: &Notebook<'_>, shown: &Path) -> Result<Done, Refusal> {
    let found = input.cell_id.as_ref().map(|id| position(id, notebook, shown)).transpose()?;
    let required = || found.ok_or_else(|| refusal("Give `cell_id`: the cell that is meant."));
    let id_of = |index: usize| notebook.ids().find(|(at, _)| *at == index).map(|(_, id)| id);
    match input.edit_mode.unwrap_or(EditMode::Replace) {
        EditMode::Delete => {
            let index = required()?;
            let text = format!("Cell {} was deleted", index + 1);
            Ok(Done { text, number: index + 1, id: id_of(index), content: notebook.deleted(index) })
        }
        EditMode::Insert => {
            let Some(kind) = input.cell_type else {
                return Err(refusal("`insert` needs `cell_type`: code or markdown."));
            };
            let index = found.map_or(0, |index| index + 1);
            let id = notebook.has_ids.then(|| new_id(notebook));
            let cell = new_cell(kind.name(), &input.new_source, id.as_deref());
            let text = format!("A new {} cell is now cell {}", kind.name(), index + 1);
            Ok(Done { text, number: index + 1, id, content: notebook.inserted(index, &cell) })
        }
        EditMode::Replace => {
            let index = required()?;
            let mut cell = notebook.cell(index).unwrap_or_default();
            replace(&mut cell, input)?;
            let text = format!("Cell {} was replaced", index + 1);
            Ok(Done { text, number: index + 1, id: id_of(index), content: notebook.replaced(index, &cell) })
        }
    }
}

/// Gives a cell its new source and takes away what belonged to the old one.
fn replace(place: &mut Value, input: &NotebookEditInput) -> Result<(), Refusal> {
    let Some(fields) = place.as_object_mut() else {
        return Err(refusal("The cell is damaged: it is no object. Repair the notebook with Bash."));
    };
    // A source is a list of lines or one text; both are kept as they were.
    let source = match fields.get("source") {
        Some(Value::String(_)) => Value::String(input.new_source.clone()),
        Some(_) | None => source_lines(&input.new_source),
    };
    fields.insert("source".to_owned(), source);
    if let Some(kind) = input.cell_type {
        fields.insert("cell_type".to_owned(), json!(kind.name()));
    }
    if fields.get("cell_type").and_then(Value::as_str) == Some("code") {
        fields.insert("outputs".to_owned(), json!([]));
        fields.insert("execution_count".to_owned(), Value::Null);
    } else {
        // Only code cells have these; a notebook that keeps them elsewhere is not valid.
        fields.shift_remove("outputs");
        fields.shift_remove("execution_count");
    }
    Ok(())
}

fn new_id(notebook: &Notebook<'_>) -> String {
    let taken: HashSet<String> = notebook.ids().map(|(_, id)| id).collect();
    loop {
        let mut id = uuid::Uuid::new_v4().simple().to_string();
        id.truncate(8);
        if !taken.contains(&id) {
            return id;
        }
    }
}

/// Where the cell is: by its own id, otherwise by its number.
fn position(id: &CellId, notebook: &Notebook<'_>, shown: &Path) -> Result<usize, Refusal> {
    let text = match id {
        CellId::Text(text) => text.trim().to_owned(),
        CellId::Number(number) => number.to_string(),
    };
    let own = notebook.ids().find(|(_, id)| *id == text).map(|(index, _)| index);
    let number = || text.strip_prefix("cell-").unwrap_or(&text).parse::<usize>().ok()?.checked_sub(1);
    own.or_else(|| number().filter(|index| *index < notebook.len())).ok_or_else(|| {
        refusal(format!(
            "There is no cell {text:?} in {}, which has {} cells. Read the notebook to see them; use a cell's id or its \
             number.",
            shown.display(),
            notebook.len()
        ))
    })
}
