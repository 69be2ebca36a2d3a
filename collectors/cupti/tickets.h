// From a launch to the call that it belongs to, when the record of its kernel comes: before the call has ended, or long after.
//
// Lock-free and of fixed size: what is too old is forgotten and counted.
#pragma once

#include <cstdint>

namespace attntrace {

// The time of a kernel that was launched under this correlation id.
void AddLaunchTime(uint32_t correlation, uint64_t ns) noexcept;
// Of a variant; nothing where there is none of this slot.
void AddTime(uint32_t slot, uint64_t ns, uint64_t launches) noexcept;

}  // namespace attntrace
