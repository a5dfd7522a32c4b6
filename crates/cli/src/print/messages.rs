//! The messages of all files, each up to the place where the file cannot be read any further.

use otlpprof_otlp::encoded::EncodedMessage;

use crate::report::content::Content;
use crate::report::profile_file::ProfileFile;

/// Calls `take` with every message of each file, up to the file's end or to the place where the file cannot
/// be read any further. The first such error is put into `broken`.
pub(super) fn each_message(
    files: &[ProfileFile],
    broken: &mut Option<anyhow::Error>,
    mut take: impl FnMut(&ProfileFile, &EncodedMessage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for file in files {
        if let Some(error) = each_of_file(file, |message| take(file, message))? {
            broken.get_or_insert(error);
        }
    }
    Ok(())
}

/// Calls `take` with every message of a file, as [`each_message`] does. Returns the error at the place where
/// the file cannot be read any further.
///
/// # Errors
/// `take` has failed, or the file cannot be opened.
fn each_of_file(
    file: &ProfileFile,
    mut take: impl FnMut(&EncodedMessage) -> anyhow::Result<()>,
) -> anyhow::Result<Option<anyhow::Error>> {
    if file.content == Content::Otlp {
        for message in file.input.messages()? {
            match message {
                Ok(message) => take(&message)?,
                Err(error) => return Ok(Some(error)),
            }
        }
        return Ok(None);
    }
    let (mut count, mut taken) = (0, Ok(()));
    let read = file.each_message(&mut |mut message| {
        message.index = count;
        count += 1;
        if taken.is_ok() {
            taken = take(&message);
        }
    });
    taken?;
    Ok(match read {
        Ok(damage) => damage.map(anyhow::Error::msg),
        Err(error) => Some(error),
    })
}
