//! Profiles of a random program: several types, processes, labels and times.

use otlpprof_otlp::wire::{Profile, ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles};

use otlpprof_testkit::otlp_fixture::{DURATION, Dictionary, TIME, inline};

/// Numbers that a seed determines.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        // Lehmer's generator: the modulus is a prime.
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 % limit
    }
}

/// The tables, frames and time of the profiles of one message.
struct Program {
    chance: Chance,
    tables: Dictionary,
    frames: Vec<i32>,
    start: u64,
}

impl Program {
    fn new(seed: u64, interval: u64) -> Self {
        let mut tables = Dictionary::new();
        let frames = (0..30).map(|number| match number % 6 {
            4 => tables.frame("native", &format!("native_{number}"), "libjvm.so", 0),
            5 => tables.frame("kernel", &format!("do_sys_{number}"), "", 0),
            // Two functions of one name, in different files.
            3 => tables.frame("jvm", "<script>alert(1)</script>", &format!("Same{}.java", number % 12), 3),
            _ => tables.java(&format!("com.example.p{}.Class{}.run", number % 4, number / 2), number),
        });
        let frames = frames.collect();
        Self { chance: Chance(seed), tables, frames, start: TIME + interval * DURATION }
    }

    /// A stack that begins like many others. Recursion occurs.
    fn stack(&mut self) -> i32 {
        let mut numbers = vec![self.chance.below(3)];
        for _ in 0..self.chance.below(14) {
            let last = numbers[numbers.len() - 1];
            let next = (last * 7 + self.chance.below(4) * 5 + numbers.len() as u64) % 30;
            numbers.push(if self.chance.below(5) == 0 { last } else { next });
        }
        let locations = numbers.iter().rev().map(|&number| self.frames[number as usize]).collect();
        self.tables.stack(locations)
    }

    fn sample(&mut self, values: Vec<i64>, timestamps_unix_nano: Vec<u64>) -> Sample {
        let stack_index = self.stack();
        let thread = format!("worker-{}", self.chance.below(4));
        let mut attribute_indices = vec![self.tables.text("thread.name", &thread)];
        let endpoint = self.chance.below(4);
        if endpoint > 0 {
            attribute_indices.push(self.tables.text("rest_endpoint", &format!("/<b>{endpoint}&amp;")));
        }
        Sample { stack_index, attribute_indices, values, timestamps_unix_nano, ..Default::default() }
    }

    fn profile(&mut self, types: [&str; 4], period: i64, samples: Vec<Sample>) -> Profile {
        let [sample, sample_unit, of_period, period_unit] = types;
        Profile {
            sample_type: self.tables.value_type(sample, sample_unit),
            period_type: self.tables.value_type(of_period, period_unit),
            period,
            time_unix_nano: self.start,
            duration_nano: DURATION,
            samples,
            ..Default::default()
        }
    }

    /// Each sample has one value and the profile's start as time.
    fn cpu(&mut self, interval: u64) -> Profile {
        let samples = (0..60).map(|_| {
            let value = 1 + self.chance.below(1_000);
            self.sample(vec![value.cast_signed()], vec![])
        });
        let samples = samples.collect();
        // Under a budget the period changes.
        let period = 10_000_000 * (1 + interval.cast_signed() % 3);
        self.profile(["samples", "count", "cpu", "nanoseconds"], period, samples)
    }

    /// Each sample has several times.
    fn wall(&mut self) -> Profile {
        let samples = (0..40).map(|_| {
            let count = 1 + self.chance.below(3);
            let times = (0..count).map(|_| self.start + self.chance.below(DURATION)).collect();
            self.sample(vec![], times)
        });
        let samples = samples.collect();
        self.profile(["samples", "count", "wall", "nanoseconds"], 50_000_000, samples)
    }

    /// The state at the end of the interval.
    fn live(&mut self, count: u64) -> Profile {
        let at = self.start + DURATION - 1;
        let samples = (0..count).map(|_| {
            let value = 1 + self.chance.below(1 << 30);
            self.sample(vec![value.cast_signed()], vec![at])
        });
        let samples = samples.collect();
        self.profile(["inuse_space", "bytes", "space", "bytes"], 512 << 10, samples)
    }
}

/// Eight intervals of two processes. Nothing lives any more at the end of the second one.
pub(crate) fn generated(seed: u64) -> Vec<ProfilesData> {
    let places = (0..8).flat_map(|interval| [(interval, 1), (interval, 2)]);
    let messages = places.map(|(interval, process)| {
        let mut program = Program::new(seed + 100 * interval + process, interval);
        let live = if process == 2 && interval >= 6 { 0 } else { 20 };
        let profiles = vec![program.cpu(interval), program.wall(), program.live(live)];
        let resource = Resource {
            attributes: vec![
                inline("service.name", "generated"),
                inline("process.pid", &process.to_string()),
            ],
            ..Default::default()
        };
        ProfilesData {
            resource_profiles: vec![ResourceProfiles {
                resource: Some(resource),
                scope_profiles: vec![ScopeProfiles { profiles, ..Default::default() }],
                ..Default::default()
            }],
            dictionary: Some(program.tables.0),
        }
    });
    messages.collect()
}
