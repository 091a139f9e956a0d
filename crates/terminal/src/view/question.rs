//! A question in the live area. It is drawn at once but takes keys only after a second without any, or when the person goes to
//! it: keys that were meant for the prompt reach the prompt. Enter counts a moment later still, and pasted text never.

use std::time::{Duration, Instant};

use qoder_protocol::{ActionId, Answer, ElicitationAnswer};
use qoder_types::Actor;

use crate::composer::{Composer, Draft};
use crate::input::{Key, KeyCode};
use crate::questions::{Asked, FieldKind, Form, PermissionChoice, PlanChoice};
use crate::state::Conversation;

/// Without a key for this long the question has the focus.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// Enter counts this long after the focus came.
const ENTER_AFTER: Duration = Duration::from_millis(300);

/// A question in the live area.
#[derive(Debug)]
pub(crate) struct QuestionView {
    /// What is asked.
    pub(crate) asked: Asked,
    /// When it was on the screen.
    pub(crate) painted: Option<Instant>,
    /// When it got the focus.
    pub(crate) focused: Option<Instant>,
    /// The chosen row.
    pub(crate) selected: usize,
    /// The first row of the body that is shown.
    pub(crate) scroll: usize,
    /// Words that are being written, for a choice that takes some.
    pub(crate) words: Option<Composer>,
    /// Which of several questions, or which field.
    pub(crate) place: usize,
    /// What is wrong with what was entered.
    pub(crate) problem: Option<String>,
}

/// What a key came to.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It was taken.
    Taken,
    /// It belongs to the prompt.
    NotMine,
    /// An answer to a question of the gate.
    Answer(ActionId, Box<Answer>),
    /// An answer to a server.
    Elicitation(String, ElicitationAnswer),
    /// The input or the plan is to be edited; this is its text.
    Edit(String),
    /// The folder is trusted, or not.
    Trust(bool),
}

impl QuestionView {
    /// The oldest question that is open and is not among those that were answered.
    pub(crate) fn next(
        conversation: &Conversation,
        files: &crate::questions::SettingsFiles,
        has_judge: bool,
        answered: &[ActionId],
    ) -> Option<Self> {
        let open = conversation.questions.iter().find(|open| !answered.contains(&open.action()));
        let asked = match (open, conversation.elicitations.first()) {
            (Some(question), _) => Asked::of_question(question, files, has_judge, &conversation.tasks),
            (None, Some(elicitation)) => Asked::of_elicitation(elicitation),
            (None, None) => return None,
        };
        Some(Self::new(asked))
    }

    /// A question that is not on the screen yet.
    pub(crate) fn new(asked: Asked) -> Self {
        let words = match &asked {
            Asked::Form(form) => form.fields.first().map(|field| writing(&field.text)),
            Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_) | Asked::Trust(_) => None,
        };
        Self { asked, painted: None, focused: None, selected: 0, scroll: 0, words, place: 0, problem: None }
    }

    /// The call that it is about.
    pub(crate) fn action(&self) -> Option<ActionId> {
        match &self.asked {
            Asked::Permission(permission) => Some(permission.action()),
            Asked::Plan(plan) => Some(plan.action()),
            Asked::Choices(choices) => Some(choices.action()),
            Asked::Form(_) | Asked::Trust(_) => None,
        }
    }

    /// True while the session waits for it.
    pub(crate) fn is_open(&self, conversation: &Conversation) -> bool {
        match (self.action(), &self.asked) {
            (Some(action), _) => conversation.questions.iter().any(|open| open.action() == action),
            (None, Asked::Form(form)) => {
                conversation.elicitations.iter().any(|open| open.elicitation_id == form.id())
            }
            // It is answered before there is a session.
            (None, Asked::Trust(_)) => true,
            (None, Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_)) => false,
        }
    }

    /// True when keys are for it.
    pub(crate) fn has_focus(&self) -> bool {
        self.focused.is_some()
    }

    /// When it will get the focus, if no key comes.
    pub(crate) fn focus_due(&self, last_key: Instant) -> Option<Instant> {
        match (self.focused, self.painted) {
            (None, Some(painted)) => Some(painted.max(last_key) + QUIET),
            (Some(_), _) | (None, None) => None,
        }
    }

    /// Gives it the focus.
    pub(crate) fn focus(&mut self, now: Instant) {
        self.focused.get_or_insert(now);
    }

    /// Takes the focus away: the person writes.
    pub(crate) fn unfocus(&mut self) {
        self.focused = None;
    }

    /// Takes a key that was read at this time.
    pub(crate) fn key(&mut self, key: Key, at: Instant, by: &Actor) -> Reply {
        let Some(focused) = self.focused else { return Reply::NotMine };
        // What was read before the question could be seen, or could take keys, was not for it.
        if at < focused || self.painted.is_none_or(|painted| at < painted) {
            return Reply::NotMine;
        }
        let is_enter = key == Key::plain(KeyCode::Enter);
        if is_enter && at < focused + ENTER_AFTER && !self.has_words() {
            return Reply::Taken;
        }
        match key.code {
            KeyCode::PageDown => {
                self.scroll = self.scroll.saturating_add(8);
                return Reply::Taken;
            }
            KeyCode::PageUp => {
                self.scroll = self.scroll.saturating_sub(8);
                return Reply::Taken;
            }
            _ => {}
        }
        match &self.asked {
            Asked::Permission(_) => self.permission_key(key, by),
            Asked::Plan(_) => self.plan_key(key, by),
            Asked::Choices(_) => self.choices_key(key, by),
            Asked::Form(_) => self.form_key(key),
            Asked::Trust(_) => self.trust_key(key),
        }
    }

    /// True when words were written for a choice that takes some: the person knows what Enter is for.
    fn has_words(&self) -> bool {
        let written = self.words.as_ref().is_some_and(|words| !words.is_empty());
        // A form begins with a field that may be filled already.
        written && !matches!(self.asked, Asked::Form(_))
    }

    /// No comes first: the key that means nothing in particular changes nothing.
    fn trust_key(&mut self, key: Key) -> Reply {
        match (key.code, key.ctrl) {
            (KeyCode::Up, _) => self.select(false, 2),
            (KeyCode::Down, _) => self.select(true, 2),
            (KeyCode::Enter, _) => Reply::Trust(self.selected == 1),
            (KeyCode::Char('y' | '2'), false) => Reply::Trust(true),
            (KeyCode::Char('n' | '1'), false) | (KeyCode::Esc, _) => Reply::Trust(false),
            _ => Reply::NotMine,
        }
    }

    fn permission_key(&mut self, key: Key, by: &Actor) -> Reply {
        if self.words.is_some() {
            return self.words_key(key, |this, words| {
                this.permission_answer(PermissionChoice::NoWithWords, Some(words), by)
            });
        }
        let Asked::Permission(permission) = &mut self.asked else { return Reply::Taken };
        let choices = permission.choices();
        let chosen = choices.get(self.selected).copied();
        let choice = match (key.code, key.ctrl) {
            (KeyCode::Up, _) => return self.select(false, choices.len()),
            (KeyCode::Down, _) => return self.select(true, choices.len()),
            (KeyCode::Left | KeyCode::Right, _) => {
                permission.turn_scope(key.code == KeyCode::Right);
                return Reply::Taken;
            }
            (KeyCode::Char('g'), true) => return Reply::Edit(permission.editable()),
            (KeyCode::Esc, _) => Some(PermissionChoice::Stop),
            (KeyCode::Tab, _) => Some(PermissionChoice::NoWithWords),
            (KeyCode::Enter, _) => chosen,
            (KeyCode::Char('y'), false) => Some(PermissionChoice::Once),
            (KeyCode::Char('n'), false) => Some(PermissionChoice::No),
            (KeyCode::Char(digit @ '1'..='5'), false) => {
                choices.iter().copied().find(|choice| choice.number() == digit)
            }
            _ => return Reply::NotMine,
        };
        match choice {
            Some(PermissionChoice::NoWithWords) => {
                self.words = Some(writing(""));
                Reply::Taken
            }
            Some(choice) => self.permission_answer(choice, None, by),
            None => Reply::Taken,
        }
    }

    fn permission_answer(&self, choice: PermissionChoice, words: Option<&str>, by: &Actor) -> Reply {
        match &self.asked {
            Asked::Permission(permission) => {
                Reply::Answer(permission.action(), Box::new(permission.answer(choice, words, by)))
            }
            Asked::Plan(_) | Asked::Choices(_) | Asked::Form(_) | Asked::Trust(_) => Reply::Taken,
        }
    }

    fn plan_key(&mut self, key: Key, by: &Actor) -> Reply {
        let answer = |this: &Self, choice, words: Option<&str>| match &this.asked {
            Asked::Plan(plan) => Reply::Answer(plan.action(), Box::new(plan.answer(choice, words, by))),
            Asked::Permission(_) | Asked::Choices(_) | Asked::Form(_) | Asked::Trust(_) => Reply::Taken,
        };
        if self.words.is_some() {
            return self.words_key(key, |this, words| answer(this, PlanChoice::KeepPlanning, Some(words)));
        }
        let Asked::Plan(plan) = &self.asked else { return Reply::Taken };
        let choices = plan.choices();
        let choice = match (key.code, key.ctrl) {
            (KeyCode::Up, _) => return self.select(false, choices.len()),
            (KeyCode::Down, _) => return self.select(true, choices.len()),
            (KeyCode::Char('g'), true) => return Reply::Edit(plan.text().to_owned()),
            (KeyCode::Esc, _) => Some(PlanChoice::KeepPlanning),
            (KeyCode::Enter, _) => choices.get(self.selected).copied(),
            (KeyCode::Char(digit @ '1'..='4'), false) => {
                digit.to_digit(10).and_then(|digit| choices.get(digit as usize - 1)).copied()
            }
            _ => return Reply::NotMine,
        };
        match choice {
            Some(PlanChoice::KeepPlanning) => {
                self.words = Some(writing(""));
                Reply::Taken
            }
            Some(choice) => answer(self, choice, None),
            None => Reply::Taken,
        }
    }

    /// Keys while words are written: Enter sends them, Escape goes back to the choices.
    fn words_key(&mut self, key: Key, send: impl Fn(&Self, &str) -> Reply) -> Reply {
        match key.code {
            KeyCode::Enter if !key.shift && !key.alt => {
                let words = self.words.as_ref().map(|words| words.draft().expanded()).unwrap_or_default();
                send(self, &words)
            }
            KeyCode::Esc => {
                self.words = None;
                Reply::Taken
            }
            _ => {
                if let Some(words) = &mut self.words {
                    words.key(key, 80);
                }
                Reply::Taken
            }
        }
    }

    fn choices_key(&mut self, key: Key, by: &Actor) -> Reply {
        let place = self.place;
        let Asked::Choices(choices) = &mut self.asked else { return Reply::Taken };
        let count = choices.all.len();
        let Some(choice) = choices.all.get_mut(place) else { return Reply::Taken };
        // The last row is for own words.
        let own_words = choice.options.len();
        if self.words.is_some() && key.code != KeyCode::Esc && key.code != KeyCode::Enter {
            if matches!(key.code, KeyCode::Up) {
                self.words = None;
                return self.select(false, own_words + 1);
            }
            if let Some(words) = &mut self.words {
                words.key(key, 80);
                choice.words = words.draft().expanded();
            }
            return Reply::Taken;
        }
        match key.code {
            KeyCode::Up => return self.select(false, own_words + 1),
            KeyCode::Down => {
                self.select(true, own_words + 1);
                self.write_own_words();
            }
            KeyCode::Left | KeyCode::Right | KeyCode::Tab => {
                let forward = key.code != KeyCode::Left && !key.shift;
                self.place = if forward { (place + 1).min(count - 1) } else { place.saturating_sub(1) };
                (self.selected, self.words) = (0, None);
            }
            KeyCode::Char(' ') if choice.several => choice.choose(self.selected),
            KeyCode::Char(digit @ '1'..='9') => {
                let option = digit.to_digit(10).unwrap_or(1) as usize - 1;
                if option >= own_words {
                    self.selected = own_words;
                    self.write_own_words();
                } else {
                    self.selected = option;
                    choice.choose(option);
                    if !choice.several {
                        return self.next_choice(by);
                    }
                }
            }
            KeyCode::Enter => {
                if !choice.several && self.selected < own_words {
                    choice.choose(self.selected);
                }
                if !choice.is_answered() {
                    if self.selected == own_words {
                        self.write_own_words();
                    }
                    return Reply::Taken;
                }
                return self.next_choice(by);
            }
            KeyCode::Esc if self.words.is_some() => self.words = None,
            KeyCode::Esc => {
                let refusal = choices.refusal(true, by);
                return Reply::Answer(choices.action(), Box::new(refusal));
            }
            _ => return Reply::NotMine,
        }
        Reply::Taken
    }

    fn write_own_words(&mut self) {
        if let Asked::Choices(choices) = &self.asked
            && let Some(choice) = choices.all.get(self.place)
            && self.selected == choice.options.len()
        {
            self.words = Some(writing(&choice.words));
        }
    }

    /// Goes to the next question that has no answer, or answers all of them.
    fn next_choice(&mut self, by: &Actor) -> Reply {
        let Asked::Choices(choices) = &self.asked else { return Reply::Taken };
        (self.selected, self.words) = (0, None);
        match choices.all.iter().position(|choice| !choice.is_answered()) {
            Some(open) => {
                self.place = open;
                Reply::Taken
            }
            None => Reply::Answer(choices.action(), Box::new(choices.answer(by))),
        }
    }

    fn form_key(&mut self, key: Key) -> Reply {
        self.store_field();
        let place = self.place;
        let Asked::Form(form) = &mut self.asked else { return Reply::Taken };
        let id = form.id().to_owned();
        let count = form.fields.len();
        match (key.code, key.ctrl) {
            (KeyCode::Esc, _) => return Reply::Elicitation(id, Form::cancel()),
            (KeyCode::Char('x'), true) => return Reply::Elicitation(id, Form::decline()),
            (KeyCode::Up, _) => self.go_to_field(place.saturating_sub(1)),
            (KeyCode::Down | KeyCode::Tab, _) => self.go_to_field((place + 1).min(count.saturating_sub(1))),
            (KeyCode::Left | KeyCode::Right, _) | (KeyCode::Char(' '), false)
                if form.fields.get(place).is_some_and(|field| is_chosen(&field.kind)) =>
            {
                turn_value(form, place, key.code != KeyCode::Left);
                self.go_to_field(place);
            }
            (KeyCode::Enter, _) => {
                if let Some(problem) = form.problem(place) {
                    self.problem = Some(problem);
                    return Reply::Taken;
                }
                if place + 1 < count {
                    self.go_to_field(place + 1);
                    return Reply::Taken;
                }
                match form.accept() {
                    Ok(answer) => return Reply::Elicitation(id, answer),
                    Err((wrong, problem)) => {
                        self.go_to_field(wrong);
                        self.problem = Some(problem);
                    }
                }
            }
            _ => {
                if let Some(words) = &mut self.words {
                    words.key(key, 80);
                }
                self.problem = None;
                self.store_field();
            }
        }
        Reply::Taken
    }

    fn store_field(&mut self) {
        if let (Asked::Form(form), Some(words)) = (&mut self.asked, &self.words)
            && let Some(field) = form.fields.get_mut(self.place)
        {
            field.text = words.draft().expanded();
        }
    }

    fn go_to_field(&mut self, place: usize) {
        self.place = place;
        self.problem = None;
        if let Asked::Form(form) = &self.asked {
            self.words = form.fields.get(place).map(|field| writing(&field.text));
        }
    }

    fn select(&mut self, down: bool, count: usize) -> Reply {
        self.selected = if down {
            (self.selected + 1).min(count.saturating_sub(1))
        } else {
            self.selected.saturating_sub(1)
        };
        Reply::Taken
    }

    /// Takes a paste: into words that are being written, and nowhere else.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        if !self.has_focus() {
            return false;
        }
        match &mut self.words {
            Some(words) => {
                words.insert(text);
                self.store_field();
                true
            }
            None => false,
        }
    }
}

fn writing(text: &str) -> Composer {
    let mut composer = Composer::default();
    composer.set(Draft::of(text));
    composer
}

fn is_chosen(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::YesNo | FieldKind::OneOf(_))
}

/// The next or previous value of a field that has a few.
fn turn_value(form: &mut Form, place: usize, forward: bool) {
    let Some(field) = form.fields.get_mut(place) else { return };
    match &field.kind {
        FieldKind::YesNo => {
            let yes = matches!(field.text.as_str(), "yes" | "true" | "y");
            field.text = if yes { "no" } else { "yes" }.to_owned();
        }
        FieldKind::OneOf(options) => {
            let now = options.iter().position(|(value, name)| *value == field.text || *name == field.text);
            let count = options.len().max(1);
            let next = match (now, forward) {
                (None, _) => 0,
                (Some(now), true) => (now + 1) % count,
                (Some(now), false) => (now + count - 1) % count,
            };
            if let Some((_, name)) = options.get(next) {
                field.text.clone_from(name);
            }
        }
        FieldKind::Text { .. } | FieldKind::Number { .. } => {}
    }
}
