//! Draws the view. All text from a profile is escaped.

use otlpprof_report::frame_table::FrameKind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::lines::{self, Lines};
use super::view::{Panes, View};
use crate::terminal::Shown;

const HELP: &str = "q quit  t type  / filter  Esc no filter  s sort  p pause  Tab tables  arrows scroll";
/// Columns before a function's name, and before a thread's, with the spaces between columns.
const FUNCTION_WIDTHS: [u16; 4] = [10, 7, 10, 7];
const KIND_WIDTH: u16 = 6;
const THREAD_WIDTHS: [u16; 2] = [10, 7];

/// Draws the view of these lines.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, shown: &Lines) {
    let [head, kinds, types, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(shown.kinds.is_some().into()),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Line::styled(shown.head.clone(), bold)), head);
    frame.render_widget(Paragraph::new(shown.kinds.clone().unwrap_or_default()), kinds);
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
        FrameKind::Java => Color::Green,
        FrameKind::Native => Color::Blue,
        FrameKind::Kernel => Color::Red,
        FrameKind::Stub => Color::Cyan,
        FrameKind::Marker => Color::DarkGray,
        FrameKind::Other(_) => Color::Yellow,
    })
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::terminal::is_harmful;
    use crate::top::lines::{FunctionLine, ThreadLine};

    /// The lines of a screen of this width.
    fn screen(view: &View, lines: &Lines, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
        terminal.draw(|frame| draw(frame, view, lines)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<_> = buffer.content().iter().map(|cell| cell.symbol().to_owned()).collect();
        cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
    }

    #[test]
    fn names_cannot_control_the_terminal_and_keep_their_ends() {
        let hostile = "\u{1b}[2J\u{9b}31m\u{202e}\r\nevil";
        let columns = || ["1", "2", "3", "4"].map(str::to_owned);
        let function = |name: &str| FunctionLine {
            columns: columns(),
            kind: FrameKind::Java,
            kind_name: "Java",
            name: name.to_owned(),
        };
        let lines = Lines {
            head: "JVM 1".to_owned(),
            kinds: Some("your code 100.0 %".to_owned()),
            types: vec![(hostile.to_owned(), true)],
            functions: vec![function(hostile), function(&format!("{}.run", "a.long.Name".repeat(50)))],
            threads: vec![ThreadLine { columns: ["5", "6"].map(str::to_owned), name: hostile.to_owned() }],
        };
        let view = View { typed: Some(hostile.to_owned()), ..View::default() };
        let shown = screen(&view, &lines, 120);
        let escaped = r"\u{1b}[2J\u{9b}31m\u{202e}\u{d}\u{a}evil";
        assert_eq!(shown.iter().filter(|line| line.contains(escaped)).count(), 4, "{shown:#?}");
        assert!(!shown.concat().contains(is_harmful), "{shown:#?}");
        let long = shown.iter().find(|line| line.ends_with("Name.run")).expect("the end of the long name");
        assert!(long.contains('…') && long.chars().count() == 120, "{long}");
        // A narrow terminal.
        for width in [1, 10, 40] {
            screen(&view, &lines, width);
        }
    }
}
