//! Draws the view. All text from a profile is escaped.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::lines::{self, Lines};
use super::view::{Panes, View};
use crate::cli::terminal::Shown;
use crate::report::frame_table::FrameKind;

const HELP: &str = "q quit  t type  / filter  Esc no filter  s sort  p pause  Tab tables  arrows scroll";
/// Columns before a function's name, and before a thread's, with the spaces between columns.
const FUNCTION_WIDTHS: [u16; 4] = [10, 7, 10, 7];
const KIND_WIDTH: u16 = 6;
const THREAD_WIDTHS: [u16; 2] = [10, 7];

/// Draws the view of these lines.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, shown: &Lines) {
    let [head, types, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Line::styled(shown.head.clone(), bold)), head);
    frame.render_widget(Paragraph::new(types_line(shown)), types);
    let (functions, threads) = match view.panes {
        Panes::Functions => (Some(body), None),
        Panes::Threads => (None, Some(body)),
        Panes::Both => {
            let [functions, threads] =
                Layout::vertical([Constraint::Fill(2), Constraint::Fill(1)]).areas(body);
            (Some(functions), Some(threads))
        }
    };
    if let Some(area) = functions {
        draw_functions(frame, area, view.scrolled, shown);
    }
    if let Some(area) = threads {
        let scrolled = if view.panes == Panes::Threads { view.scrolled } else { 0 };
        draw_threads(frame, area, scrolled, shown);
    }
    frame.render_widget(Paragraph::new(foot_line(view)), foot);
}

fn types_line(shown: &Lines) -> Line<'static> {
    if shown.types.is_empty() {
        return Line::raw(lines::NO_SAMPLES);
    }
    let mut spans = vec![Span::raw("types: ")];
    for (name, is_shown) in &shown.types {
        let style = if *is_shown { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        spans.push(Span::styled(Shown(name).to_string(), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn foot_line(view: &View) -> Line<'static> {
    match (&view.typed, &view.mistake) {
        (Some(typed), None) => Line::raw(format!("filter: {}_   Enter applies, Esc cancels", Shown(typed))),
        (Some(typed), Some(mistake)) => Line::styled(
            format!("filter: {}   {}", Shown(typed), Shown(mistake)),
            Style::new().fg(Color::Red),
        ),
        (None, _) => Line::styled(HELP, Style::new().add_modifier(Modifier::DIM)),
    }
}

fn draw_functions(frame: &mut Frame<'_>, area: Rect, scrolled: usize, shown: &Lines) {
    let before: u16 = FUNCTION_WIDTHS.iter().chain([&KIND_WIDTH]).map(|width| width + 1).sum();
    let room = usize::from(area.width.saturating_sub(before));
    let height = usize::from(area.height.saturating_sub(1));
    let first = scrolled.min(shown.functions.len().saturating_sub(height));
    let rows = shown.functions[first..].iter().take(height).map(|function| {
        let name = lines::end_of(&Shown(&function.name).to_string(), room);
        let [own, own_share, total, total_share] = function.columns.clone();
        let cells = [own, own_share, total, total_share, function.kind_name.to_owned(), name];
        Row::new(cells).style(colour_of(function.kind))
    });
    let header = lines::FUNCTION_TITLES.map(str::to_owned);
    let widths = FUNCTION_WIDTHS.into_iter().chain([KIND_WIDTH]).map(Constraint::Length);
    let widths: Vec<_> = widths.chain([Constraint::Fill(1)]).collect();
    draw_table(frame, area, rows, header, widths);
}

fn draw_threads(frame: &mut Frame<'_>, area: Rect, scrolled: usize, shown: &Lines) {
    let before: u16 = THREAD_WIDTHS.iter().map(|width| width + 1).sum();
    let room = usize::from(area.width.saturating_sub(before));
    let height = usize::from(area.height.saturating_sub(1));
    let first = scrolled.min(shown.threads.len().saturating_sub(height));
    let rows = shown.threads[first..].iter().take(height).map(|thread| {
        let [value, share] = thread.columns.clone();
        Row::new([value, share, lines::end_of(&Shown(&thread.name).to_string(), room)])
    });
    let widths = THREAD_WIDTHS.into_iter().map(Constraint::Length).chain([Constraint::Fill(1)]).collect();
    draw_table(frame, area, rows, lines::THREAD_TITLES.map(str::to_owned), widths);
}

fn draw_table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    rows: impl Iterator<Item = Row<'static>>,
    header: [String; N],
    widths: Vec<Constraint>,
) {
    let header = Row::new(header).style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_widget(Table::new(rows, widths).header(header).column_spacing(1), area);
}

fn colour_of(kind: FrameKind) -> Style {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_refused {
        return Style::new();
    }
    Style::new().fg(match kind {
        FrameKind::Managed => Color::Green,
        FrameKind::Native => Color::Blue,
        FrameKind::Kernel => Color::Red,
        FrameKind::Stub => Color::Cyan,
        FrameKind::Marker => Color::DarkGray,
    })
}
