// CUPTI's binary interface, as far as it is read here: numbers and leading members that have not moved from CUDA 12.4 to 13.x.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attntrace::cupti {

// CUpti_ActivityKind, and CUpti_ActivityFlag of a flush.
enum ActivityKind : int { kMemcpy = 1, kMemset = 2, kKernel = 3, kConcurrentKernel = 10 };
inline constexpr uint32_t kFlushForced = 1;

// Where a kernel's record holds what is read of it. CUPTI fills the newest structure that it knows (208 bytes in 12.x, more
// since); every newer one begins as the older ones do.
inline constexpr size_t kRecordKind = 0, kRecordStart = 16, kRecordEnd = 24, kRecordCorrelation = 92, kRecordGraphNode = 144;
inline constexpr size_t kRecordLeast = 160;
inline constexpr uint32_t kOldestVersion = 19;     // cuptiGetVersion of CUDA 12.0
inline constexpr uint32_t kMayRefuseBuffer = 27;   // before 12.9, a request that is answered with no buffer is a crash
inline constexpr uint32_t kDrainsGraphs = 130300;  // before it, copies in graphs fill device buffers unless they are recorded

enum Domain : int { kDriverApi = 1, kResource = 3 };

enum Result : int { kSuccess = 0, kMaxLimitReached = 12, kNotInitialized = 15, kMultipleSubscribers = 39, kUnknownError = 999 };

// CUpti_driver_api_trace_cbid of everything that launches a kernel. Runtime launches pass through these.
inline constexpr uint32_t kLaunchCallbacks[] = {
    115, 116, 117,  // cuLaunch, cuLaunchGrid, cuLaunchGridAsync
    307, 442,       // cuLaunchKernel, its per-thread-stream twin
    477, 478, 480,  // cuLaunchCooperativeKernel, its twin, ...MultiDevice
    652, 653,       // cuLaunchKernelEx, its twin
};
enum DriverCallback : uint32_t { kGraphLaunch = 514, kGraphLaunchPerThread = 515 };

enum ResourceCallback : uint32_t {
  kGraphDestroyStarting = 10,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphExecCreateStarting = 17,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};

struct CallbackData {  // CUpti_CallbackData
  int site;            // 0 on entry
  const char* function_name;
  const void* parameters;
  void* result;
  const char* symbol_name;  // of the kernel, mangled; null for a graph launch
  void* context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation_id;
};

struct ResourceData {  // CUpti_ResourceData
  void* context;
  void* handle;
  const void* descriptor;  // for graphs a GraphData
};

struct GraphData {  // CUpti_GraphData
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  int node_type;  // CUgraphNodeType: 0 is a kernel
  void* dependency;
  void* executable;
};

struct GraphLaunchParameters {  // cuGraphLaunch_params
  void* executable;
  void* stream;
};

struct SubscriberParameters {  // CUpti_SubscriberParams, CUDA 13.0
  uint64_t size;
  const char* name;
  char* other_name;
  uint64_t other_size;
};

}  // namespace attntrace::cupti
