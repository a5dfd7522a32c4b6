//! Distinct stacks of a random program. They share their roots and call some functions from many places, as
//! the stacks of real programs do.

use std::collections::{HashMap, HashSet};

/// A function of the program.
pub(crate) struct Function {
    pub(crate) name: String,
    /// The file of a Java method, the object of a native function; empty for others.
    pub(crate) file: String,
    /// The value of `profile.frame.type`.
    pub(crate) kind: &'static str,
}

/// A small generator (splitmix64) with a fixed seed, so that every run measures the same stacks.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 on, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below a bound, with small ones more frequent than others if `power` is above 1.
    pub(crate) fn below(&mut self, bound: usize, power: f64) -> usize {
        (self.unit().powf(power) * bound as f64) as usize
    }
}

/// Stacks as a tree.
pub(crate) struct Stacks {
    /// Parent and function of each node. Node 0 is the root.
    nodes: Vec<(u32, u32)>,
    /// The node of each stack's youngest frame.
    pub(crate) leaves: Vec<u32>,
}

impl Stacks {
    /// Makes `count` distinct stacks of `functions` functions, 5 to 22 frames deep.
    pub(crate) fn new(count: usize, functions: usize) -> Self {
        let mut numbers = Numbers::new(7);
        let mut made = Self { nodes: vec![(0, 0)], leaves: Vec::with_capacity(count) };
        let (mut children, mut known) = (HashMap::new(), HashSet::new());
        while made.leaves.len() < count {
            let depth = 5 + (numbers.unit() * 10.0 + numbers.unit() * 8.0) as usize;
            let mut node = 0_u32;
            for level in 0..depth {
                let choices = match level {
                    0..3 => 2,
                    3..9 => 4,
                    _ => 11,
                };
                let choice = numbers.below(choices, 1.6);
                // The place determines the function. A small part of the functions has most of the places.
                let place = u64::from(node) * 13 + choice as u64;
                let function = Numbers::new(place).below(functions, 2.0) as u32;
                node = *children.entry((node, function)).or_insert_with(|| {
                    made.nodes.push((node, function));
                    (made.nodes.len() - 1) as u32
                });
            }
            if known.insert(node) {
                made.leaves.push(node);
            }
        }
        made
    }

    /// The functions of a stack, from its youngest frame to its root.
    pub(crate) fn stack(&self, leaf: u32) -> impl Iterator<Item = u32> {
        let mut node = leaf;
        std::iter::from_fn(move || {
            let (parent, function) = self.nodes[node as usize];
            let is_root = node == 0;
            node = parent;
            (!is_root).then_some(function)
        })
    }
}

const PACKAGES: [&str; 8] = [
    "java.lang",
    "java.util.concurrent",
    "com.example.shop.cart",
    "com.example.shop.search",
    "org.springframework.web.servlet",
    "org.apache.catalina.core",
    "io.netty.channel",
    "org.hibernate.engine",
];
const CLASSES: [&str; 8] =
    ["Thread", "Worker", "CartService", "SearchIndex", "DispatcherServlet", "Pipeline", "Session", "Mapper"];
const METHODS: [&str; 10] =
    ["run", "call", "handle", "process", "lookup", "apply", "flush", "encode", "compare", "hash"];

/// `count` functions of different kinds, with names that are as long as those of real programs.
pub(crate) fn functions(count: usize) -> Vec<Function> {
    let function = |number: usize| {
        let method = METHODS[number % METHODS.len()];
        let of = |name: String, file: &str, kind| Function { name, file: file.to_owned(), kind };
        match number {
            _ if number % 11 == 7 => {
                of(format!("G1ParScanThreadState::{method}_{number}"), "libjvm.so", "native")
            }
            _ if number % 17 == 9 => of(format!("do_sys_{method}_{number}"), "", "kernel"),
            _ => {
                let package = PACKAGES[(number >> 1) % PACKAGES.len()];
                let class = format!("{}{number}", CLASSES[(number >> 3) % CLASSES.len()]);
                of(format!("{package}.{class}.{method}"), &format!("{class}.java"), "jvm")
            }
        }
    };
    (0..count).map(function).collect()
}
