use std::collections::HashMap;

fn main() {
    let mut seen = HashMap::new();
    for (number, word) in std::env::args().enumerate() {
        seen.insert(word, number);
    }
    let mut words: Vec<_> = seen.into_iter().collect();
    words.sort();
    println!("{words:?}");
}
