//! Groups of counters that only grow, each with a name for reports.

/// Declares a group, and the `COUNTS` of this process. All accesses are relaxed: the counters are independent
/// of each other, and readers compute differences.
#[macro_export]
macro_rules! counts {
    ($(#[$doc:meta])* $group:ident { $($(#[$count_doc:meta])* $name:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $group {
            $($(#[$count_doc])* pub $name: ::std::sync::atomic::AtomicU64,)*
        }

        impl $group {
            /// Returns every count with its name, in the order of declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                use ::std::sync::atomic::Ordering;
                [$((stringify!($name), self.$name.load(Ordering::Relaxed)),)*].into_iter()
            }
        }

        /// The counts of this process.
        pub static COUNTS: $group = $group { $($name: ::std::sync::atomic::AtomicU64::new(0),)* };
    };
}
pub use counts;
