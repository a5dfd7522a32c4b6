//! The loads of [`super`], for x86_64. What says whether a value was loaded is in rdx, which `Registers::fail_load`
//! clears.

fault_tolerant_load!("rdx", load_u64, "mov {value}, qword ptr [{address}]");
fault_tolerant_load!("rdx", load_u32, "mov {value:e}, dword ptr [{address}]");
fault_tolerant_load!("rdx", load_u16, "movzx {value:e}, word ptr [{address}]");
fault_tolerant_load!("rdx", load_u8, "movzx {value:e}, byte ptr [{address}]");
