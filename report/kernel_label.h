// Kernel names as people read them. Pure functions; any thread.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "report/report.pb.h"

namespace attntrace {

// "flash_fwd_kernel" of "void pytorch_flash::flash_fwd_kernel<...>(...)"; of a launcher that is no kernel's name of its own,
// what it launches: "FlashAttnFwdSm90" of "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<...> >
// >(...)".
std::string ShortKernelName(absl::string_view demangled);

// "flash_bwd_dot_do_o_kernel, flash_bwd_convert_dq_kernel x2": what one call launches, in order; equal short names are put
// together.
std::string KernelList(const Variant& variant);

}  // namespace attntrace
