//! Resolves addresses by wholesym.

use std::path::Path;

use otlpprof_bench_symbolize_peers::{arguments, output};
use wholesym::{LookupAddress, SymbolManager, SymbolManagerConfig};

fn main() {
    let (file, addresses) = arguments();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let manager = SymbolManager::with_config(SymbolManagerConfig::new());
        let map = manager.load_symbol_map_for_binary_at_path(Path::new(&file), None).await.expect("symbols");
        let mut out = output();
        for address in addresses {
            if let Some(found) = map.lookup(LookupAddress::Svma(address)).await {
                for frame in found.frames.iter().flatten() {
                    let file = frame.file_path.as_ref().map(|path| path.display_path());
                    let name = frame.function.as_deref().unwrap_or("?");
                    let line = frame.line_number.unwrap_or_default();
                    out.frame(name, file.as_deref().unwrap_or("?"), line, 0);
                }
            }
            out.end();
        }
    });
}
