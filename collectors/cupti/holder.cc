#include "collectors/cupti/holder.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "collectors/cupti/abi.h"
#include "collectors/cupti/window.h"
#include "collectors/mapped.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

uint32_t Version() noexcept {
  uint32_t version = 0;
  auto* const get = reinterpret_cast<int (*)(uint32_t*)>(CuptiFunction("cuptiGetVersion"));
  return get != nullptr && get(&version) == 0 ? version : 0;
}

// CUPTI 13.0 and 13.1 tell who holds the subscription. From 13.2 on this call would turn the process to the other kind of sessions.
bool AskCupti(char* name, size_t size) noexcept {
  using Subscribe = int (*)(void**, void (*)(void*, int, uint32_t, const void*), void*, cupti::SubscriberParameters*);
  auto* const subscribe = reinterpret_cast<Subscribe>(CuptiFunction("cuptiSubscribe_v2"));
  auto* const unsubscribe = reinterpret_cast<int (*)(void*)>(CuptiFunction("cuptiUnsubscribe"));
  const uint32_t version = Version();
  if (subscribe == nullptr || unsubscribe == nullptr || version < 130000 || version >= 130200) return false;
  name[0] = 0;
  cupti::SubscriberParameters parameters{sizeof(parameters), "attntrace", name, size};
  void* subscriber = nullptr;
  const int result = subscribe(&subscriber, [](void*, int, uint32_t, const void*) {}, nullptr, &parameters);
  if (result == cupti::kSuccess) unsubscribe(subscriber);  // whoever it was is gone; the next need asks again
  return name[0] != 0 && name[0] != '<';  // "<not provided>": subscribed without a name, as tools before CUPTI 13 do
}

const char* LikelyHolder() noexcept {
  struct Tool {
    const char* variable;
    const char* library;
    const char* name;
  };
  static constexpr Tool kTools[] = {
      {"NSYS_PROFILING_SESSION_ID", "libToolsInjection64", "Nsight Systems"},
      {"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "libcuda-injection", "Nsight Compute"},
      {"NV_SANITIZER_INJECTION_PORT_BASE", "libsanitizer-collection", "compute-sanitizer"},
      {"CUDA_INJECTION64_PATH", nullptr, "the tool of CUDA_INJECTION64_PATH"},
  };
  for (const Tool& tool : kTools) {
    if (getenv(tool.variable) != nullptr || (tool.library != nullptr && MappedLibrary(tool.library) != nullptr)) return tool.name;
  }
  return "another tool in this process";
}

}  // namespace

void RecordCuptiVersion() noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) return;
  Spool().Environment("cupti", std::to_string(Version()));
}

void NoteHolder() noexcept {
  char name[128] = "";
  const bool told = AskCupti(name, sizeof(name));
  char text[320];
  snprintf(text, sizeof(text), "CUPTI is held by %s: the kernels of attention calls are not named", told ? name : LikelyHolder());
  Spool().Note("cupti", text);
}

void DescribeRefusal(int result, char* text, size_t size) noexcept {
  const char* words = "";
  auto* const get = reinterpret_cast<int (*)(int, const char**)>(CuptiFunction("cuptiGetResultString"));
  if (get == nullptr || get(result, &words) != 0 || words == nullptr) words = "";
  const char* const advice =
      result == cupti::kNotInitialized ? "; is this libcupti newer than the driver?" : "";
  snprintf(text, size, "CUPTI answers %d %s%s: the kernels of attention calls are not named", result, words, advice);
}

}  // namespace attntrace
