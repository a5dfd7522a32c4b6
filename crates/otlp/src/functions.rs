//! The functions of one message, and the decision which system names are written.
//!
//! A method's system name repeats the name and adds the descriptor. The system names of all methods would be
//! half of a small message, and a descriptor distinguishes nothing unless the method is overloaded. So a
//! method's system name is written only if the message has another function with the same name and a
//! different system name. A native function's system name is always written, since nothing else in the
//! message gives it.

use otlpprof_model::{Interner, StringId};

use super::wire_index::WireIndex;

/// A function that something in the message refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EnteredFunction {
    pub(super) name: WireIndex,
    /// The system name, by its id in the model's tables, because most system names are not written.
    pub(super) system_name: StringId,
    pub(super) is_method: bool,
    pub(super) filename: WireIndex,
    pub(super) start_line: u32,
}

/// The system names of the functions that share one name.
#[derive(Clone, Copy)]
enum OfOneName {
    Nothing,
    All(StringId),
    Different,
}

/// The function table as it grows.
#[derive(Debug)]
pub(super) struct Functions(Interner<EnteredFunction, WireIndex>);

impl Functions {
    /// A table of the zero value, with room for `capacity` functions.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let mut functions = Self(Interner::with_capacity(capacity));
        functions.intern(EnteredFunction::default());
        functions
    }

    pub(super) fn intern(&mut self, function: EnteredFunction) -> WireIndex {
        self.0.intern(function)
    }

    /// Whether a function is a method of a class. Different methods of the model's tables are different
    /// functions here.
    pub(super) fn is_method(&self, function: WireIndex) -> bool {
        self.0.get(function).is_method
    }

    /// The functions, in the order of the table.
    pub(super) fn entered(&self) -> &[EnteredFunction] {
        self.0.values()
    }

    /// The system name to write for each function, once all functions are known. `names` exceeds the index of
    /// every name. The omission makes no two functions equal: functions that differ only in their system
    /// names share a name, so these system names are written.
    pub(super) fn written_system_names(&self, names: usize) -> Vec<StringId> {
        let mut by_name = vec![OfOneName::Nothing; names];
        for function in self.entered() {
            let of_name = &mut by_name[function.name.0 as usize];
            *of_name = match *of_name {
                OfOneName::Nothing => OfOneName::All(function.system_name),
                OfOneName::All(other) if other == function.system_name => OfOneName::All(other),
                _ => OfOneName::Different,
            };
        }
        // A function without a name shares its name index with the zero value, so its system name is written.
        let written = |function: &EnteredFunction| match by_name[function.name.0 as usize] {
            OfOneName::All(_) if function.is_method => StringId::EMPTY,
            _ => function.system_name,
        };
        self.entered().iter().map(written).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: bool = false;
    const METHOD: bool = true;

    /// The written system names of functions with these names, system names and kinds; 0 is none.
    fn written(functions: &[(u32, u32, bool)]) -> Vec<u32> {
        let mut table = Functions::with_capacity(functions.len());
        for (line, &(name, system_name, is_method)) in (1..).zip(functions) {
            let (name, system_name) = (WireIndex(name), StringId(system_name));
            let place = table.intern(EnteredFunction {
                name,
                system_name,
                is_method,
                filename: WireIndex::ZERO,
                start_line: line,
            });
            assert_eq!(place, WireIndex(line));
        }
        let written = table.written_system_names(10);
        assert_eq!(written[0], StringId::EMPTY);
        written[1..].iter().map(|name| name.0).collect()
    }

    #[test]
    fn overloaded_methods_alone_keep_their_descriptors() {
        assert_eq!(written(&[(1, 11, METHOD), (2, 21, METHOD)]), [0, 0]);
        assert_eq!(written(&[(1, 11, METHOD), (2, 21, METHOD), (1, 12, METHOD)]), [11, 0, 12]);
        // Methods of two class loaders, or two places in the source: their descriptors do not distinguish
        // them.
        assert_eq!(written(&[(1, 11, METHOD), (1, 11, METHOD)]), [0, 0]);
        assert_eq!(written(&[(1, 11, METHOD), (1, 11, METHOD), (1, 12, METHOD)]), [11, 11, 12]);
    }

    #[test]
    fn native_functions_keep_their_linkage_names() {
        assert_eq!(written(&[(1, 11, NATIVE), (2, 21, METHOD), (3, 0, NATIVE)]), [11, 0, 0]);
        assert_eq!(written(&[(1, 11, NATIVE), (1, 11, NATIVE)]), [11, 11]);
    }

    #[test]
    fn a_method_stays_apart_from_a_native_function_of_its_name_and_from_none() {
        assert_eq!(written(&[(1, 11, METHOD), (1, 0, NATIVE)]), [11, 0]);
        assert_eq!(written(&[(1, 11, METHOD), (1, 12, NATIVE)]), [11, 12]);
        assert_eq!(written(&[(0, 11, METHOD)]), [11]);
    }
}
