//! Reads the samples of a profile.

use std::collections::BTreeSet;
use std::{fmt, mem};

use otlpprof_model::{
    AttributeId, AttributeSetId, Batch, FrameId, LinkId, Profile, Resource, SampleIdentity, Scope, StringId,
    Tables, attribute_keys, label,
};

use super::error::PprofError;
use super::frames::Frames;
use super::messages::{Label, Sample};
use super::parts::{Parts, message};
use super::types::{SampleType, sample_types};

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

/// The most names of labels that [`Remarks`] have.
const MOST_KEYS: usize = 8;

/// The parts of a profile that the model cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The number of samples that have several values of one label. The first value is kept: an attribute has
    /// one.
    pub samples: u64,
    /// Names of such labels.
    pub keys: BTreeSet<String>,
}

impl Remarks {
    /// Whether the model holds everything.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    fn add_key(&mut self, key: &str) {
        if self.keys.len() < MOST_KEYS && !self.keys.contains(key) {
            self.keys.insert(key.to_owned());
        }
    }
}

impl fmt::Display for Remarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(|key| &**key).collect::<Vec<_>>().join(", ");
        write!(
            f,
            "pprof: {} samples have several values of a label ({keys}): the first is kept",
            self.samples
        )
    }
}

/// Reads a profile. Passes its samples to `take`, in several batches if there are many.
///
/// Memory beyond the bytes: 24 bytes for each mapping, location, function and string, and one batch.
///
/// # Errors
/// The first error in the bytes, or one that `take` returns.
pub fn read<E: From<PprofError>>(
    bytes: &[u8],
    mut take: impl FnMut(Batch) -> Result<(), E>,
) -> Result<Remarks, E> {
    let parts = Parts::of(bytes)?;
    let head = Head::of(&parts)?;
    let (mut sums, mut remarks) = (Sums::new(&head), Remarks::default());
    let mut totals = vec![0_i64; head.types.len()];
    let (mut frames, most_frames) = (0, FRAMES.max(bytes.len().saturating_mul(FRAMES_FOR_EACH_BYTE)));
    for (number, sample) in parts.samples().enumerate() {
        frames +=
            sums.add(&parts, sample, &mut totals, &mut remarks).map_err(|error| error.within(number))?;
        if frames > most_frames {
            let detail = format!("more than {most_frames} frames of all samples");
            return Err(PprofError::new(format!("sample {number}"), detail).into());
        }
        if sums.samples >= BATCH_SAMPLES || sums.stack_frames >= BATCH_FRAMES {
            take(mem::replace(&mut sums, Sums::new(&head)).batch(&head))?;
        }
    }
    // A profile without samples has its types and its time all the same.
    take(sums.batch(&head))?;
    Ok(remarks)
}

/// The facts about the whole profile.
struct Head {
    types: Vec<SampleType>,
    start_unix_nano: u64,
    duration_nano: u64,
    resource: Resource,
    comment: String,
    scope: Scope,
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
        let mut scope = Scope::default();
        if parts.default_sample_type != 0 {
            let shown = label(&parts.text(parts.default_sample_type)?).to_owned();
            scope.attributes.push((attribute_keys::PPROF_DEFAULT_SAMPLE_TYPE, shown));
        }
        Ok(Self {
            types: sample_types(parts)?,
            start_unix_nano: u64::try_from(parts.time_unix_nano).unwrap_or(0),
            duration_nano: u64::try_from(parts.duration_nano).unwrap_or(0),
            resource,
            comment: label(&comment).to_owned(),
            scope,
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

    /// Adds an encoded sample, and its values to the totals. Returns the number of its frames.
    fn add(
        &mut self,
        parts: &Parts<'_>,
        sample: &[u8],
        totals: &mut [i64],
        remarks: &mut Remarks,
    ) -> Result<usize, SampleError> {
        let Sample { location_ids, values, labels } = message(sample).map_err(SampleError::Detail)?;
        if values.len() != self.profiles.len() {
            let detail = format!("{} values for {} sample types", values.len(), self.profiles.len());
            return Err(SampleError::Detail(detail));
        }
        if let Some(value) = values.iter().find(|&&value| value < 0) {
            let detail = format!("the negative value {value}; a difference is made by comparing two files");
            return Err(SampleError::Detail(detail));
        }
        for (total, &value) in totals.iter_mut().zip(&values) {
            let detail = || "the sum of the values up to here is not below 2^63".to_owned();
            *total = total.checked_add(value).ok_or_else(|| SampleError::Detail(detail()))?;
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
        let mut has_several = false;
        for label in labels {
            let Some(attribute) = attribute(parts, label, &mut self.tables)? else { continue };
            let mut known = self.attributes.iter().copied();
            match known.find(|&known| self.key(known) == self.key(attribute)) {
                None => self.attributes.push(attribute),
                Some(known) if known == attribute => {}
                Some(_) => {
                    has_several = true;
                    remarks.add_key(self.tables.strings.get(self.key(attribute)));
                }
            }
        }
        remarks.samples += u64::from(has_several);
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

    /// The key of an attribute.
    fn key(&self, attribute: AttributeId) -> StringId {
        self.tables.attributes.get(attribute).key
    }

    fn batch(self, head: &Head) -> Batch {
        let Self { tables, profiles, .. } = self;
        Batch { resource: head.resource.clone(), scope: head.scope.clone(), tables, profiles }
    }
}

/// The attribute of a label; `None` for a label with neither a text nor a number, which Go's reader ignores
/// too, and for one without a name. A thread's name is a text also where it is a number.
fn attribute(parts: &Parts<'_>, of: Label, tables: &mut Tables) -> Result<Option<AttributeId>, PprofError> {
    let key = parts.text(of.key)?;
    if key.is_empty() {
        return Ok(None);
    }
    let is_thread = key == THREAD;
    let key = if is_thread { attribute_keys::THREAD_NAME } else { label(&key) };
    if of.text != 0 {
        return Ok(Some(tables.string_attribute(key, label(&parts.text(of.text)?))));
    }
    let unit = parts.text(of.unit)?;
    let is_number = of.number != 0 || of.unit != 0;
    if is_thread {
        return Ok(is_number.then(|| tables.string_attribute(key, &of.number.to_string())));
    }
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
