//! Unwind rules of each kind, for walks over memory of any content. The fuzz target uses them too.

use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// The rules. The first one describes a function with a frame of two words.
pub(crate) fn rules() -> Vec<UnwindRule> {
    let saved = ReturnAddressRule::AtCfaPlus(-8);
    let rule = |cfa, fp, return_address| UnwindRule { cfa, fp, return_address };
    vec![
        rule(CfaRule::SpPlus(16), FpRule::Same, saved),
        rule(CfaRule::SpPlus(-8), FpRule::Same, saved),
        rule(CfaRule::SpPlus(8), FpRule::Same, ReturnAddressRule::LinkRegister),
        rule(CfaRule::FpPlus(16), FpRule::AtCfaPlus(-16), saved),
        rule(CfaRule::RegisterPlus(10, 8), FpRule::AtFpPlus(0), saved),
        rule(CfaRule::FpDeref { at: -8, offset: -8 }, FpRule::AtFpPlus(0), saved),
        rule(CfaRule::SpDeref { at: 8, offset: 8 }, FpRule::Undefined, saved),
        rule(CfaRule::IndexedSpDeref { register: 9, scale: 8, at: 8, offset: 8 }, FpRule::Same, saved),
        rule(CfaRule::PltX86_64 { threshold: 11 }, FpRule::Same, saved),
        rule(CfaRule::SignalFrame, FpRule::Same, saved),
        rule(CfaRule::EndOfStack, FpRule::Same, saved),
        rule(CfaRule::Unsupported, FpRule::Same, saved),
    ]
}
