//! The loads of [`super`], for x86_64. Register rdx says whether a value was loaded; `Registers::fail_load`
//! clears that register.

fault_tolerant_load!("rdx", load_u64, "mov {value}, qword ptr [{address}]");
fault_tolerant_load!("rdx", load_u32, "mov {value:e}, dword ptr [{address}]");
fault_tolerant_load!("rdx", load_u16, "movzx {value:e}, word ptr [{address}]");
fault_tolerant_load!("rdx", load_u8, "movzx {value:e}, byte ptr [{address}]");
