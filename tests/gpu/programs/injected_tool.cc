// A tool as CUDA_INJECTION64_PATH names one: it takes CUPTI's subscription in cuInit, before anybody else can, counts launches of
// kernels and writes their number to the file that INJECTED_COUNT names.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

std::atomic<long> g_launches{0};

void CUPTIAPI OnCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  if (static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER) ++g_launches;
}

struct AtExit {
  ~AtExit() {
    const char* const path = getenv("INJECTED_COUNT");
    std::FILE* const file = path == nullptr || g_launches == 0 ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", g_launches.load());
    std::fclose(file);
  }
} g_at_exit;

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static CUpti_SubscriberHandle subscriber;
  if (cuptiSubscribe(&subscriber, OnCall, nullptr) != CUPTI_SUCCESS) return 1;
  for (const CUpti_CallbackId call : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx}) {
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call);
  }
  return 1;
}
