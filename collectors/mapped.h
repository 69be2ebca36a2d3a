// Libraries that the process has mapped already. The agent links none of CUDA's: what it needs of them is looked up.
#pragma once

namespace attntrace {

// Handle of the mapped library `stem`.so[.version], for dlsym; null where there is none. Never maps anything.
void* MappedLibrary(const char* stem) noexcept;
bool IsMapped(const char* stem) noexcept;

}  // namespace attntrace
