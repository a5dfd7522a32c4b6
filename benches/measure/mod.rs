//! The method of the benchmarks here: the contenders take turns within one process, so that other load on the
//! machine affects all of them. A figure is the median of many turns with its spread and its ratio to the
//! first contender's.

// Each benchmark uses only a part of this module.
#![allow(dead_code)]

pub(crate) mod child;
pub(crate) mod profilers;

use std::time::{Duration, Instant};

/// One way to do the work.
pub(crate) struct Contender<'a> {
    /// Its name in the output.
    pub(crate) name: String,
    /// Does the work once.
    pub(crate) run: Box<dyn FnMut() + 'a>,
    /// The amount of work of one run, in the caller's units: samples and bytes, for example.
    pub(crate) work: Vec<(&'static str, f64)>,
}

impl<'a> Contender<'a> {
    /// Returns a contender.
    pub(crate) fn new(name: &str, work: &[(&'static str, f64)], run: impl FnMut() + 'a) -> Self {
        Self { name: name.to_owned(), run: Box::new(run), work: work.to_vec() }
    }
}

/// The result of one contender: the time of one run.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// The contender's name.
    pub(crate) name: String,
    /// Half of the turns were faster.
    pub(crate) median: Duration,
    /// A quarter of the turns were faster.
    pub(crate) lower_quartile: Duration,
    /// A quarter of the turns were slower.
    pub(crate) upper_quartile: Duration,
}

/// The length of a turn: repeated runs together take this long, so that the clock's resolution does not
/// matter.
const TURN: Duration = Duration::from_millis(20);

/// Lets the contenders take `turns` turns each, after one turn as a warm-up.
pub(crate) fn alternate(contenders: &mut [Contender<'_>], turns: usize) -> Vec<Figure> {
    let repetitions: Vec<u32> =
        contenders.iter_mut().map(|contender| repetitions(&mut contender.run)).collect();
    let mut times = vec![Vec::with_capacity(turns); contenders.len()];
    for turn in 0..turns {
        for place in 0..contenders.len() {
            // Each turn begins with another contender, so that none always follows the same neighbour.
            let index = (turn + place) % contenders.len();
            let started = Instant::now();
            (0..repetitions[index]).for_each(|_| (contenders[index].run)());
            times[index].push(started.elapsed() / repetitions[index]);
        }
    }
    let figure = |(contender, mut times): (&Contender<'_>, Vec<Duration>)| {
        times.sort_unstable();
        let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
        Figure { name: contender.name.clone(), median: at(2), lower_quartile: at(1), upper_quartile: at(3) }
    };
    contenders.iter().zip(times).map(figure).collect()
}

fn repetitions(run: &mut dyn FnMut()) -> u32 {
    run();
    let started = Instant::now();
    run();
    let one = started.elapsed().max(Duration::from_nanos(1));
    (TURN.as_nanos() / one.as_nanos()).clamp(1, 1_000_000) as u32
}

/// Measures the contenders and prints a line for each: the median time, the quartiles, the ratio to the first
/// contender's median, and the throughput in each unit of work.
pub(crate) fn compare(title: &str, turns: usize, mut contenders: Vec<Contender<'_>>) -> Vec<Figure> {
    let figures = alternate(&mut contenders, turns);
    println!("{title} ({turns} alternating turns; median [quartiles], ratio to the first)");
    for (figure, contender) in figures.iter().zip(&contenders) {
        let ratio = figure.median.as_secs_f64() / figures[0].median.as_secs_f64();
        print!(
            "  {:<34} {:>10.3?} [{:.3?} {:.3?}] {ratio:>6.2}×",
            figure.name, figure.median, figure.lower_quartile, figure.upper_quartile
        );
        for (unit, amount) in &contender.work {
            print!("  {} {unit}/s", quantity(amount / figure.median.as_secs_f64()));
        }
        println!();
    }
    figures
}

/// The median of some numbers, and their spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// Half of the numbers are smaller.
    pub(crate) median: f64,
    /// A quarter of the numbers are smaller.
    pub(crate) lower_quartile: f64,
    /// A quarter of the numbers are greater.
    pub(crate) upper_quartile: f64,
}

impl Spread {
    /// Returns the spread of at least one number.
    pub(crate) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |quarter: usize| numbers[(numbers.len() - 1) * quarter / 4];
        Self { median: at(2), lower_quartile: at(1), upper_quartile: at(3) }
    }
}

/// Formats a number with three decimal places and a decimal prefix.
fn quantity(number: f64) -> String {
    let prefixes = ["", "k", "M", "G", "T"];
    let exponent = (number.max(1.0).log10() / 3.0) as usize;
    let exponent = exponent.min(prefixes.len() - 1);
    format!("{:.3}{}", number / 1000f64.powi(exponent as i32), prefixes[exponent])
}
