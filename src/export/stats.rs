//! What became of every message: counters that add up.

/// An amount of messages, by three measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages.
    pub messages: u64,
    /// `Sample`s in them.
    pub samples: u64,
    /// Encoded bytes, before compression and framing.
    pub bytes: u64,
}

impl Tally {
    /// The amount that one message is.
    pub fn of(message: &super::Message) -> Self {
        Self { messages: 1, samples: message.samples, bytes: message.body.len() as u64 }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.samples += other.samples;
        self.bytes += other.bytes;
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), std::ops::Add::add)
    }
}

/// The three ways in which a message does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Left the queue without an attempt to send it.
    Dropped,
    /// The collector answered that it will not take it.
    Rejected,
    /// Attempts failed, and there will be no further one.
    GivenUp,
}

/// Why a message did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Dropped: the queue was full; the oldest goes first.
    QueueFull,
    /// Dropped: submitted after the shutdown began.
    Closed,
    /// Rejected: an error status that is not to be retried.
    Refused,
    /// Rejected: over the size limit, and could not be split.
    TooLarge,
    /// Rejected: redirected elsewhere, which is never followed.
    Redirected,
    /// Given up: retried for as long as the policy allows.
    RetriesExhausted,
    /// Given up: pending when the shutdown's time was over, or when no collector could be reached during it.
    ShutDown,
    /// Given up: the TLS handshake failed, a certificate that is not trusted for example.
    Tls,
    /// Given up: what answered does not speak HTTP, or the HTTP client failed in itself.
    Protocol,
    /// Rejected: answered with a success that is none of OTLP/HTTP, such as a web page.
    NotOtlp,
    /// Rejected: a partial success said that not all of the message's profiles were taken. Which were, and so which
    /// samples, it does not say.
    RejectedInPart,
}

impl Loss {
    /// All of them, in the order of declaration.
    pub const ALL: [Self; 11] = [
        Self::QueueFull,
        Self::Closed,
        Self::Refused,
        Self::TooLarge,
        Self::Redirected,
        Self::RetriesExhausted,
        Self::ShutDown,
        Self::Tls,
        Self::Protocol,
        Self::NotOtlp,
        Self::RejectedInPart,
    ];

    /// Its name in counters, lower-case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Closed => "closed",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::Redirected => "redirected",
            Self::RetriesExhausted => "retries_exhausted",
            Self::ShutDown => "shut_down",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::NotOtlp => "not_otlp",
            Self::RejectedInPart => "rejected_in_part",
        }
    }

    /// Which of the three ways it is.
    pub const fn fate(self) -> Fate {
        match self {
            Self::QueueFull | Self::Closed => Fate::Dropped,
            Self::Refused | Self::TooLarge | Self::Redirected | Self::NotOtlp | Self::RejectedInPart => {
                Fate::Rejected
            }
            Self::RetriesExhausted | Self::ShutDown | Self::Tls | Self::Protocol => Fate::GivenUp,
        }
    }
}

/// A collector's word that it took a message but not all of it, or took it with a warning
/// (`ExportProfilesPartialSuccess`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialSuccess {
    /// Number of `Profile`s that it did not take; 0 with a warning.
    pub rejected_profiles: i64,
    /// Its explanation, shortened.
    pub error_message: String,
}

/// What an [`Uploader`](super::Uploader) has done so far. A copy taken under its lock, so that
/// `submitted = sent + split + dropped + rejected + given up + pending` in all three measures, at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadStats {
    /// All that was handed over, the pieces of split messages included.
    pub submitted: Tally,
    /// Taken by the collector, whole.
    pub sent: Tally,
    /// Replaced by smaller messages, which count as submitted in their turn.
    pub split: Tally,
    /// In the queue or being sent.
    pub pending: Tally,
    /// Not arrived, by reason, in the order of [`Loss::ALL`].
    pub lost: [Tally; Loss::ALL.len()],
    /// Attempts beyond the first one of a message.
    pub retries: u64,
    /// Bytes of request bodies as they went over the wire, retries included.
    pub wire_bytes: u64,
    /// Answers that carried a partial success.
    pub partial_answers: u64,
    /// Sum of the profiles that partial successes said were rejected. (OTLP counts profiles there, not
    /// samples: their messages are lost as [`Loss::RejectedInPart`], whole.)
    pub partial_rejected_profiles: u64,
    /// The latest partial success.
    pub last_partial: Option<PartialSuccess>,
}

impl UploadStats {
    /// What was lost for one reason.
    pub fn lost(&self, loss: Loss) -> Tally {
        self.lost[loss as usize]
    }

    /// What was lost in one way.
    pub fn lost_by(&self, fate: Fate) -> Tally {
        Loss::ALL.into_iter().filter(|loss| loss.fate() == fate).map(|loss| self.lost(loss)).sum()
    }

    /// The right side of the sum that equals `submitted`.
    pub fn accounted(&self) -> Tally {
        self.sent + self.split + self.pending + self.lost.into_iter().sum()
    }
}

/// Messages of a [`FileExporter`](super::FileExporter) so far. Each is in one of the three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Messages written whole.
    pub written: Tally,
    /// Messages of which nothing is left in any file.
    pub failed: Tally,
    /// Messages that could not be written, and are to be tried again.
    pub pending: Tally,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_loss_at_its_index() {
        for (index, loss) in Loss::ALL.into_iter().enumerate() {
            assert_eq!(loss as usize, index, "{}", loss.name());
        }
    }

    #[test]
    fn ways_partition_the_losses() {
        let mut stats = UploadStats::default();
        for (index, tally) in stats.lost.iter_mut().enumerate() {
            *tally = Tally { messages: 1 << index, samples: 10, bytes: 100 };
        }
        let ways = [Fate::Dropped, Fate::Rejected, Fate::GivenUp].map(|fate| stats.lost_by(fate));
        assert_eq!(ways.map(|way| way.messages), [0b11, 0b110_0001_1100, 0b1_1110_0000]);
        assert_eq!(ways.into_iter().sum::<Tally>(), stats.accounted());
    }
}
