//! Reads the samples of a profile.

use std::mem;

use super::error::PprofError;
use super::frames::Frames;
use super::messages::{Label, Sample};
use super::parts::{Parts, message};
use super::types::{SampleType, sample_types};
use crate::model::{
    AttributeId, AttributeSetId, Batch, FrameId, LinkId, Profile, Resource, SampleIdentity, Tables,
    attribute_keys, label,
};

/// The label by which profilers name the sampled thread.
const THREAD: &str = "thread";
/// The most labels of a sample.
const MOST_LABELS: usize = 1 << 8;
/// The most frames of a sample.
const STACK_FRAMES: usize = 1 << 18;
/// The most frames of all samples for each byte of the file, and the number that any file may have. A
/// location of a sample takes at least one byte, and few locations have more than a few inlined lines.
const FRAMES_FOR_EACH_BYTE: usize = 16;
const FRAMES: usize = 1 << 20;
/// The samples of a batch, and their frames.
const BATCH_SAMPLES: usize = 1 << 16;
const BATCH_FRAMES: usize = 1 << 22;

/// Reads a profile. Passes its samples to `take`, in several batches if there are many.
///
/// Memory beyond the bytes: 24 bytes for each mapping, location, function and string, and one batch.
///
/// # Errors
/// The first error in the bytes, or one that `take` returns.
pub fn read<E: From<PprofError>>(
    bytes: &[u8],
    mut take: impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let parts = Parts::of(bytes)?;
    let head = Head::of(&parts)?;
    let mut sums = Sums::new(&head);
    let (mut frames, most_frames) = (0, FRAMES.max(bytes.len().saturating_mul(FRAMES_FOR_EACH_BYTE)));
    for (number, sample) in parts.samples().enumerate() {
        frames += sums.add(&parts, sample).map_err(|error| error.within(number))?;
        if frames > most_frames {
            let detail = format!("more than {most_frames} frames of all samples");
            return Err(PprofError::new(format!("sample {number}"), detail).into());
        }
        if sums.samples >= BATCH_SAMPLES || sums.stack_frames >= BATCH_FRAMES {
            take(mem::replace(&mut sums, Sums::new(&head)).batch(&head))?;
        }
    }
    // A profile without samples has its types and its time all the same.
    take(sums.batch(&head))
}

/// The facts about the whole profile.
struct Head {
    types: Vec<SampleType>,
    start_unix_nano: u64,
    duration_nano: u64,
    resource: Resource,
    comment: String,
}

impl Head {
    fn of(parts: &Parts<'_>) -> Result<Self, PprofError> {
        let mut resource = Resource::default();
        let program = match parts.first_mapping {
            Some(id) => parts.text(parts.mapping(id)?.filename)?,
            None => "".into(),
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        // A text in brackets, such as `[kernel]`, is no file.
        match name.is_empty() || name.starts_with('[') {
            true => resource.set(attribute_keys::SERVICE_NAME, "unknown_service"),
            false => {
                resource.set(attribute_keys::SERVICE_NAME, label(&format!("unknown_service:{name}")));
                resource.set(attribute_keys::PROCESS_EXECUTABLE_NAME, label(name));
                resource.set(attribute_keys::PROCESS_EXECUTABLE_PATH, label(&program));
            }
        }
        let comments = parts.comments.iter().map(|&comment| parts.text(comment));
        let comment = comments.collect::<Result<Vec<_>, _>>()?.join("\n");
        Ok(Self {
            types: sample_types(parts)?,
            start_unix_nano: u64::try_from(parts.time_unix_nano).unwrap_or(0),
            duration_nano: u64::try_from(parts.duration_nano).unwrap_or(0),
            resource,
            comment: label(&comment).to_owned(),
        })
    }
}

/// The sums of samples.
struct Sums {
    tables: Tables,
    profiles: Vec<Profile>,
    frames: Frames,
    samples: usize,
    stack_frames: usize,
    /// Scratch space: the frames of a stack, leaf first.
    stack: Vec<FrameId>,
    /// Scratch space: the attributes of a sample.
    attributes: Vec<AttributeId>,
}

impl Sums {
    fn new(head: &Head) -> Self {
        let mut tables = Tables::new();
        let attributes = match &*head.comment {
            "" => AttributeSetId::EMPTY,
            comment => {
                let comment = tables.string_attribute(attribute_keys::PPROF_COMMENT, comment);
                tables.attribute_set(&[comment])
            }
        };
        let profile = |of: &SampleType| {
            let mut profile = Profile::new(of.profile_type, of.period);
            (profile.start_unix_nano, profile.duration_nano) = (head.start_unix_nano, head.duration_nano);
            profile.attributes = attributes;
            profile
        };
        Self {
            tables,
            profiles: head.types.iter().map(profile).collect(),
            frames: Frames::default(),
            samples: 0,
            stack_frames: 0,
            stack: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Adds an encoded sample. Returns the number of its frames.
    fn add(&mut self, parts: &Parts<'_>, sample: &[u8]) -> Result<usize, SampleError> {
        let Sample { location_ids, values, labels } = message(sample).map_err(SampleError::Detail)?;
        if values.len() != self.profiles.len() {
            let detail = format!("{} values for {} sample types", values.len(), self.profiles.len());
            return Err(SampleError::Detail(detail));
        }
        if let Some(value) = values.iter().find(|&&value| value < 0) {
            let detail = format!("the negative value {value}; a difference is made by comparing two files");
            return Err(SampleError::Detail(detail));
        }
        if labels.len() > MOST_LABELS {
            return Err(SampleError::Detail(format!("{} labels: more than {MOST_LABELS}", labels.len())));
        }
        self.stack.clear();
        for id in location_ids {
            self.stack.extend_from_slice(self.frames.of(parts, id, &mut self.tables)?);
            if self.stack.len() > STACK_FRAMES {
                return Err(SampleError::Detail(format!("more than {STACK_FRAMES} frames")));
            }
        }
        self.attributes.clear();
        for label in labels {
            let attribute = attribute(parts, label, &mut self.tables)?;
            self.attributes.extend(attribute);
        }
        let stack = self.tables.stacks.intern(&self.stack);
        let attributes = self.tables.attribute_set(&self.attributes);
        let identity = SampleIdentity { stack, attributes, link: LinkId::NONE };
        for (profile, value) in self.profiles.iter_mut().zip(values) {
            profile.add(identity, value, None);
        }
        self.samples += 1;
        self.stack_frames += self.stack.len();
        Ok(self.stack.len())
    }

    fn batch(self, head: &Head) -> Batch {
        let Self { tables, profiles, .. } = self;
        Batch { resource: head.resource.clone(), tables, profiles, ..Batch::default() }
    }
}

/// The attribute of a label; `None` for a label with neither a text nor a number, which Go's reader ignores
/// too.
fn attribute(parts: &Parts<'_>, of: Label, tables: &mut Tables) -> Result<Option<AttributeId>, PprofError> {
    let key = parts.text(of.key)?;
    let key = if key == THREAD { attribute_keys::THREAD_NAME } else { label(&key) };
    if of.text != 0 {
        return Ok(Some(tables.string_attribute(key, label(&parts.text(of.text)?))));
    }
    let unit = parts.text(of.unit)?;
    let is_number = of.number != 0 || of.unit != 0;
    Ok(is_number.then(|| tables.int_attribute(key, of.number, label(&unit))))
}

/// The reason why a sample cannot be read.
enum SampleError {
    /// The sample itself.
    Detail(String),
    /// A part that the sample refers to.
    Part(PprofError),
}

impl From<PprofError> for SampleError {
    fn from(error: PprofError) -> Self {
        Self::Part(error)
    }
}

impl SampleError {
    /// The error of the sample at this position.
    fn within(self, number: usize) -> PprofError {
        let place = format!("sample {number}");
        match self {
            Self::Detail(detail) => PprofError::new(place, detail),
            Self::Part(error) => PprofError::new(place, error.to_string()),
        }
    }
}
