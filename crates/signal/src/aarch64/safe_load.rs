//! The loads of [`super`], for aarch64. Register x9 says whether a value was loaded; `Registers::fail_load`
//! clears that register.

fault_tolerant_load!("x9", load_u64, "ldr {value}, [{address}]");
fault_tolerant_load!("x9", load_u32, "ldr {value:w}, [{address}]");
fault_tolerant_load!("x9", load_u16, "ldrh {value:w}, [{address}]");
fault_tolerant_load!("x9", load_u8, "ldrb {value:w}, [{address}]");
