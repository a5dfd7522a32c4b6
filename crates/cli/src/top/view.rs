//! The state of the view, and the keys that change it.

use otlpprof_report::function_sums::SortBy;
use otlpprof_report::measure::{self, Measure, PREFERRED};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use regex::Regex;

use super::recent::Totals;

/// Lines that a page key scrolls by.
const PAGE: usize = 10;
/// The longest filter, in characters.
const LONGEST_FILTER: usize = 200;

/// The tables that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panes {
    #[default]
    Both,
    Functions,
    Threads,
}

/// An effect of a key outside of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Quit,
    Suspend,
}

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The name of the chosen measure. `None`: the first of those that most users want.
    pub(super) measure: Option<String>,
    pub(super) sort_by: SortBy,
    pub(super) panes: Panes,
    pub(super) filter: Option<Regex>,
    /// The filter that is being typed.
    pub(super) typed: Option<String>,
    /// The mistake in the typed filter.
    pub(super) mistake: Option<String>,
    /// The sums at the time of the pause.
    pub(super) frozen: Option<Totals>,
    /// The number of lines of the tables that are scrolled away.
    pub(super) scrolled: usize,
}

impl View {
    pub(super) fn new(measure: Option<String>, sort_by: SortBy) -> Self {
        Self { measure, sort_by, ..Self::default() }
    }

    /// The measure that is shown; `None` if there are no samples of it.
    pub(super) fn shown<'m>(&self, measures: &[&'m Measure]) -> Option<&'m Measure> {
        let named = |name: &str| measures.iter().copied().find(|measure| measure.name == name);
        match &self.measure {
            Some(name) => measure::called(measures.iter().copied(), name),
            None => PREFERRED.into_iter().find_map(named).or_else(|| measures.first().copied()),
        }
    }

    /// Handles a key. `totals` are the present sums.
    pub(super) fn press(&mut self, key: KeyEvent, totals: &Totals) -> Effect {
        if key.kind == KeyEventKind::Release {
            return Effect::None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Effect::Quit,
                KeyCode::Char('z') => return Effect::Suspend,
                KeyCode::Char('u') if self.typed.is_some() => self.typed = Some(String::new()),
                _ => {}
            }
            return Effect::None;
        }
        if self.typed.is_some() {
            self.press_while_typing(key.code);
            return Effect::None;
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('t') => self.next_measure(totals, true),
            KeyCode::Char('T') => self.next_measure(totals, false),
            KeyCode::Char('s') => {
                self.sort_by = match self.sort_by {
                    SortBy::Own => SortBy::Total,
                    SortBy::Total => SortBy::Own,
                };
            }
            KeyCode::Char('p' | ' ') => {
                self.frozen = match self.frozen {
                    Some(_) => None,
                    None => Some(totals.clone()),
                };
            }
            KeyCode::Char('/') => {
                self.typed = Some(self.filter.as_ref().map_or(String::new(), Regex::to_string));
            }
            KeyCode::Tab | KeyCode::Char('m') => {
                self.scrolled = 0;
                self.panes = match self.panes {
                    Panes::Both => Panes::Functions,
                    Panes::Functions => Panes::Threads,
                    Panes::Threads => Panes::Both,
                };
            }
            KeyCode::Esc => self.filter = None,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += PAGE,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Effect::None
    }

    fn press_while_typing(&mut self, code: KeyCode) {
        self.mistake = None;
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Char(char) if typed.chars().count() < LONGEST_FILTER => typed.push(char),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter if typed.is_empty() => (self.filter, self.typed) = (None, None),
            KeyCode::Enter => match Regex::new(typed) {
                Ok(filter) => (self.filter, self.typed, self.scrolled) = (Some(filter), None, 0),
                // The last line of the message says what is wrong.
                Err(error) => self.mistake = error.to_string().lines().last().map(str::to_owned),
            },
            _ => {}
        }
    }

    /// Shows the next measure, or the one before.
    fn next_measure(&mut self, totals: &Totals, forward: bool) {
        let measures = totals.measures();
        let Some(count) = Some(measures.len()).filter(|&count| count > 0) else { return };
        let at = self.shown(&measures).and_then(|shown| measures.iter().position(|&other| other == shown));
        let next = match (at, forward) {
            (None, _) => 0,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        self.measure = Some(measures[next].name.clone());
        self.scrolled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::message_sums::StackValues;

    fn press(view: &mut View, keys: &str, totals: &Totals) -> Effect {
        let mut effect = Effect::None;
        for char in keys.chars() {
            let code = match char {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                char => KeyCode::Char(char),
            };
            effect = view.press(KeyEvent::new(code, KeyModifiers::NONE), totals);
        }
        effect
    }

    #[test]
    fn keys_change_the_view() {
        let mut totals = Totals::default();
        for name in ["alloc-space", "cpu", "wall"] {
            totals.values.push((
                Measure { name: name.into(), unit: String::new() },
                0,
                StackValues::default(),
            ));
        }
        let shown = |view: &View| view.shown(&totals.measures()).map(|measure| measure.name.clone());
        let mut view = View::default();
        assert_eq!(shown(&view).as_deref(), Some("cpu"));
        for (key, name) in [("t", "wall"), ("t", "alloc-space"), ("T", "wall")] {
            press(&mut view, key, &totals);
            assert_eq!(shown(&view).as_deref(), Some(name));
        }
        press(&mut view, "/a[\n", &totals);
        assert!(view.mistake.is_some() && view.filter.is_none());
        press(&mut view, "\u{8}q\n", &totals);
        assert_eq!(view.filter.as_ref().map(Regex::as_str), Some("aq"));
        press(&mut view, "/x\u{1b}", &totals);
        assert_eq!(view.filter.as_ref().map(Regex::as_str), Some("aq"));
        press(&mut view, "\u{1b}", &totals);
        assert!(view.filter.is_none());
        press(&mut view, "p", &totals);
        assert!(view.frozen.is_some());
        press(&mut view, "ps", &totals);
        assert!(view.frozen.is_none() && view.sort_by == SortBy::Total);
        assert_eq!(press(&mut view, "q", &totals), Effect::Quit);
        let control = |code| KeyEvent::new(KeyCode::Char(code), KeyModifiers::CONTROL);
        press(&mut view, "/", &totals);
        assert_eq!(view.press(control('c'), &totals), Effect::Quit);
        assert_eq!(view.press(control('z'), &totals), Effect::Suspend);
    }
}
