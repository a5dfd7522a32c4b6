//! Counters of what became of each message. They add up to the number of messages submitted.

use super::message::OutgoingMessage;

/// An amount of messages, by three measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages.
    pub messages: u64,
    /// `Sample`s in the messages.
    pub samples: u64,
    /// Encoded bytes, before compression and framing.
    pub bytes: u64,
}

impl Tally {
    /// The amount that one message counts as.
    pub fn of(message: &OutgoingMessage) -> Self {
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

/// The three ways in which a message fails to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Left the queue without an attempt to send it.
    Dropped,
    /// The collector answered that it will not accept the message.
    Rejected,
    /// Attempts failed, and no further attempt follows.
    GivenUp,
}

/// The reason why a message did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Dropped: the queue was full. The oldest message is dropped first.
    QueueFull,
    /// Dropped: submitted after the shutdown began.
    Closed,
    /// Rejected: answered with an error status that is not retried.
    Refused,
    /// Rejected: over the size limit, and could not be split.
    TooLarge,
    /// Rejected: answered with a redirect. Redirects are never followed.
    Redirected,
    /// Given up: retried for as long as the policy allows.
    RetriesExhausted,
    /// Given up: pending when the shutdown's deadline passed, or when no collector could be reached during
    /// the shutdown.
    ShutDown,
    /// Given up: the TLS handshake failed, for example on a certificate that is not trusted.
    Tls,
    /// Given up: the peer does not speak HTTP, or the HTTP client failed internally.
    Protocol,
    /// Rejected: answered with a success that no OTLP/HTTP receiver sends, such as a web page.
    NotOtlp,
    /// Rejected: a partial success said that some of the message's profiles were not accepted. It does not
    /// say which profiles, and so not which samples.
    RejectedInPart,
}

impl Loss {
    /// All losses, in the order of declaration.
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

    /// The loss's name in counters, lower-case with underscores.
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

    /// Which of the three ways of not arriving the loss belongs to.
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

/// A collector's answer that it accepted part of a message, or all of it with a warning
/// (`ExportProfilesPartialSuccess`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialSuccess {
    /// Number of `Profile`s that the collector did not accept. 0 with a warning.
    pub rejected_profiles: i64,
    /// The collector's explanation, shortened.
    pub error_message: String,
}

/// The counters of an [`Uploader`](super::Uploader) so far, copied under its lock. At any time, `submitted =
/// sent + split + dropped + rejected + given up + pending` holds in all three measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadStats {
    /// All messages submitted, including the pieces of split messages.
    pub submitted: Tally,
    /// Accepted by the collector as a whole.
    pub sent: Tally,
    /// Replaced by smaller messages, each of which counts as submitted.
    pub split: Tally,
    /// In the queue or being sent.
    pub pending: Tally,
    /// Not arrived, by reason, in the order of [`Loss::ALL`].
    pub lost: [Tally; Loss::ALL.len()],
    /// Attempts beyond the first of each message.
    pub retries: u64,
    /// Bytes of request bodies as sent over the wire, including retries.
    pub wire_bytes: u64,
    /// Answers that carried a partial success.
    pub partial_answers: u64,
    /// Sum of the profiles that partial successes reported as rejected. (There OTLP counts profiles, not
    /// samples. A message that was rejected in part is counted as a whole, as [`Loss::RejectedInPart`].)
    pub partial_rejected_profiles: u64,
    /// The latest partial success.
    pub last_partial: Option<PartialSuccess>,
}

impl UploadStats {
    /// The amount lost for one reason.
    pub fn lost(&self, loss: Loss) -> Tally {
        self.lost[loss as usize]
    }

    /// The amount lost in one way.
    pub fn lost_by(&self, fate: Fate) -> Tally {
        Loss::ALL.into_iter().filter(|loss| loss.fate() == fate).map(|loss| self.lost(loss)).sum()
    }

    /// The right side of the equation in the type's comment; equals `submitted`.
    pub fn accounted(&self) -> Tally {
        self.sent + self.split + self.pending + self.lost.into_iter().sum()
    }
}

/// Messages of a [`FileExporter`](super::FileExporter) so far. Each message is in exactly one of the three
/// counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Messages written whole.
    pub written: Tally,
    /// Messages that were discarded and left nothing in any file.
    pub failed: Tally,
    /// Messages that could not be written and will be retried.
    pub pending: Tally,
}

/// Messages to the readers of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// The present readers.
    pub readers: u64,
    /// Messages written whole, each counted for each reader.
    pub sent: u64,
    /// Messages that a reader missed because it did not read, or was gone.
    pub lost: u64,
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
    fn each_loss_has_exactly_one_fate() {
        let mut stats = UploadStats::default();
        for (index, tally) in stats.lost.iter_mut().enumerate() {
            *tally = Tally { messages: 1 << index, samples: 10, bytes: 100 };
        }
        let ways = [Fate::Dropped, Fate::Rejected, Fate::GivenUp].map(|fate| stats.lost_by(fate));
        assert_eq!(ways.map(|way| way.messages), [0b11, 0b110_0001_1100, 0b1_1110_0000]);
        assert_eq!(ways.into_iter().sum::<Tally>(), stats.accounted());
    }
}
