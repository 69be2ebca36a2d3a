// Which shared libraries this process has mapped.
//
// Any thread. Takes the loader's list lock only (never the one that dlopen holds while constructors run), allocates nothing.
#pragma once

#include <cstddef>

namespace attntrace::preload {

// True if a library was loaded since the last call that returned true. Costs one lock and one comparison.
bool LibrariesWereAdded() noexcept;

// Finds the mapped library whose file name is `stem` + ".so", with or without a version after it ("libc10.so",
// "libc10.so.2.6"), and copies its path. False if there is none, or its path does not fit.
bool FindLibrary(const char* stem, char* path, size_t size) noexcept;

}  // namespace attntrace::preload
