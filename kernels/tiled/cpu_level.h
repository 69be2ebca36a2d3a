// What each CPU level offers: the same functions, compiled for other instructions. cpu.cc chooses.
#pragma once

#include <cstddef>

#include "kernels/tiled/call.h"

namespace attntrace::tiled {

// Runs task(context, index, thread) for every index below count, on `threads` threads.
using Task = void (*)(const void* context, int64_t index, int thread);
using Parallel = void (*)(int64_t count, int threads, Task task, const void* context);

struct Level {
  const char* name;
  size_t (*workspace)(const Call& call, bool backward);
  void (*forward)(const Call& call, Parallel parallel);
  void (*backward)(const Call& call, Parallel parallel);
};

extern const Level kBaseLevel, kAvx2Level, kAvx512Level;

}  // namespace attntrace::tiled
