//! Options that the wanted form of a report has no use for. They are refused, so that none is ignored.

use anyhow::bail;

use super::args::Args;

impl Args {
    /// Fails if two forms of a report are wanted, or an option that the form does not take.
    ///
    /// # Errors
    /// They name the options.
    pub(super) fn check_options(&self) -> anyhow::Result<()> {
        let forms = [
            ("--tree", self.tree),
            ("--peek", self.peek.is_some()),
            ("--labels", self.labels),
            ("--diff", !self.diff.is_empty()),
        ];
        let mut forms = forms.into_iter().filter_map(|(form, is_wanted)| is_wanted.then_some(form));
        let Some(form) = forms.next() else { return Ok(()) };
        if let Some(other) = forms.next() {
            bail!("{form} and {other}: a report has one of these forms; choose one");
        }
        let given = [
            ("--sort", self.sort.is_some()),
            ("--top", self.top.is_some()),
            ("--by", self.by.is_some()),
            ("--vm", self.vm),
            ("--lines", self.stacks.has_lines()),
            ("--threads", self.stacks.has_threads()),
        ];
        for (option, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let reason = match (form, option) {
                ("--tree", "--sort") => "calls are in the order of their totals",
                ("--tree" | "--peek" | "--diff", "--vm") => "the functions of the VM's threads are there",
                ("--labels", "--vm") => "labels have no functions",
                ("--tree", "--top") => "a tree is bounded by --least and --depth",
                ("--labels", "--sort") => "values are in the order of their sums",
                ("--labels", "--by") => "the values of all attributes are shown",
                ("--labels", "--lines" | "--threads") => "labels have no stacks",
                ("--diff", "--by") => "a comparison has no groups; choose one with --where",
                _ => continue,
            };
            bail!("{option} with {form}: {reason}");
        }
        Ok(())
    }
}
