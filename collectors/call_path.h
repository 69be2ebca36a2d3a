// Where a call comes from: its stack, interned, and the attention module it runs in.
//
// Taken at the start of every attention call, on its own thread; takes the GIL (never call while holding a lock of ours). A
// known stack costs a walk over code pointers and one look into a thread's cache; names are read only for a new one.
#pragma once

#include <cstdint>

#include "collectors/python_api.h"
#include "collectors/thread_caches.h"
#include "tracer/spool/format.h"

namespace attntrace {

inline constexpr int kMaxFrames = 128;
inline constexpr uint32_t kMaxPaths = 4096;

struct CallSite {
  uint32_t path = 0;    // kPath id; 0: none, and `no_path_reason` says why
  uint32_t module = 0;  // kModule id, 0 none
  int32_t layer = -1;
  bool flex = false;  // the path runs through flex_attention's dense reference (sdpa_dense)
  const char* no_path_reason = nullptr;
};

struct PathCaches {
  DirectMapped<CachedPath, 128> paths;
  DirectMapped<CachedModule, 512> modules;
};

// `compiled_regions`: how many torch.compile'd regions are open on this thread. flex_attention that nobody compiled runs in one
// of its own making, which does not count.
CallSite Where(PathCaches* caches, int compiled_regions) noexcept;

// The same of frames that do not run any more (a traceback's), innermost first, with the line of each. Needs the GIL.
CallSite SiteOfFrames(python::Object* const* frames, const int32_t* lines, int count) noexcept;

// kPath id of frames that run now, innermost first, or of the outer ones of them. 0 where there is no room. Needs the GIL.
uint32_t PathOfRunning(python::Object* const* frames, int count) noexcept;

// How many frames are kept; set once at start.
void SetStackDepth(int frames) noexcept;

// Before fork / after it in the parent / in the child: the table's lock may not be held by a thread that is gone.
void LockPathsForFork() noexcept;
void UnlockPathsAfterFork() noexcept;

}  // namespace attntrace
