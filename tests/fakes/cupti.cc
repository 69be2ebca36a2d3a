// A libcupti.so that plays CUPTI for tests without a device: one subscriber, an enabled set per (domain, callback), dispatch of what is
// enabled and nothing else. Programs drive it through fake_launch and its like, on the thread that "launches".
//
// FAKE_CUPTI_SUBSCRIBE=n: cuptiSubscribe answers n. FAKE_CUPTI_VERSION=n. FAKE_CUPTI_UNKNOWN=1: CUPTI_ERROR_INVALID_PARAMETER for
// callbacks above 600, as an older CUPTI. Every call in a process other than the one that loaded it aborts: a forked child must not.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <utility>

#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Callback = void (*)(void* user, int domain, uint32_t callback, const void* data);

struct Subscriber {
  Callback callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, uint32_t>> enabled;
  std::set<int> domains;
};

Subscriber* g_subscriber = nullptr;
std::atomic<int> g_calls{0}, g_subscriptions{0}, g_unsubscriptions{0};
const pid_t g_loaded_in = getpid();

int Environment(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : atoi(text);
}

void Enter() {
  ++g_calls;
  if (getpid() != g_loaded_in) {
    fprintf(stderr, "fake cupti: called in a forked child\n");
    abort();
  }
}

bool IsCurrent(void* subscriber) { return g_subscriber != nullptr && subscriber == g_subscriber; }

// The layouts of CUPTI, written down a second time on purpose.
struct ApiData {
  int site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation_id;
};
struct GraphData {
  void *graph, *original_graph, *node, *original_node;
  int type;
  void *dependency, *executable;
};
struct ResourceData {
  void *context, *handle;
  const void* descriptor;
};

void Dispatch(int domain, uint32_t callback, const void* data) {
  Subscriber* s = g_subscriber;
  if (s != nullptr && (s->domains.count(domain) != 0 || s->enabled.count({domain, callback}) != 0)) {
    s->callback(s->user, domain, callback, data);
  }
}

uint32_t g_correlation = 0xfffffff0u;  // wraps soon

}  // namespace

ATTNTRACE_EXPORT int cuptiGetVersion(uint32_t* version) {
  *version = static_cast<uint32_t>(Environment("FAKE_CUPTI_VERSION", 130000));
  return 0;
}
ATTNTRACE_EXPORT int cuptiGetResultString(int, const char** text) {
  *text = "FAKE_RESULT";
  return 0;
}
ATTNTRACE_EXPORT int cuptiSubscribe(void** subscriber, Callback callback, void* user) {
  Enter();
  if (int refusal = Environment("FAKE_CUPTI_SUBSCRIBE", 0)) return refusal;
  if (g_subscriber != nullptr) return 39;
  ++g_subscriptions;
  g_subscriber = new Subscriber;
  g_subscriber->callback = callback;
  g_subscriber->user = user;
  *subscriber = g_subscriber;
  return 0;
}
ATTNTRACE_EXPORT int cuptiSubscribe_v2(void**, Callback, void*, void* parameters) {
  Enter();
  struct Parameters {
    size_t size;
    const char* name;
    char* other;
    size_t other_size;
  };
  auto* p = static_cast<Parameters*>(parameters);
  snprintf(p->other, p->other_size, "CUPTI for somebody");
  return 39;
}
ATTNTRACE_EXPORT int cuptiUnsubscribe(void* subscriber) {
  Enter();
  if (!IsCurrent(subscriber)) return 1;
  ++g_unsubscriptions;
  delete g_subscriber;
  g_subscriber = nullptr;
  return 0;
}
ATTNTRACE_EXPORT int cuptiEnableCallback(uint32_t enable, void* subscriber, int domain, uint32_t callback) {
  Enter();
  if (!IsCurrent(subscriber)) return 1;
  if (Environment("FAKE_CUPTI_UNKNOWN", 0) != 0 && callback > 600) return 1;
  if (enable != 0) {
    g_subscriber->enabled.insert({domain, callback});
  } else {
    g_subscriber->enabled.erase({domain, callback});
  }
  return 0;
}
ATTNTRACE_EXPORT int cuptiEnableDomain(uint32_t enable, void* subscriber, int domain) {
  Enter();
  if (!IsCurrent(subscriber)) return 1;
  if (enable != 0) {
    g_subscriber->domains.insert(domain);
  } else {
    g_subscriber->domains.erase(domain);
    std::erase_if(g_subscriber->enabled, [domain](const auto& one) { return one.first == domain; });
  }
  return 0;
}
ATTNTRACE_EXPORT int cuptiEnableAllDomains(uint32_t enable, void* subscriber) {
  for (int domain = 1; domain <= 6; ++domain) {
    if (int result = cuptiEnableDomain(enable, subscriber, domain)) return result;
  }
  return 0;
}
ATTNTRACE_EXPORT int cuptiFinalize() {
  Enter();
  delete g_subscriber;
  g_subscriber = nullptr;
  return 0;
}

// ---- What the tests drive ---------------------------------------------------------------------------------------------------
ATTNTRACE_EXPORT void fake_launch(const char* kernel, uint32_t callback) {
  uint64_t scratch = 0;
  ApiData data{0, "cuLaunchKernel", nullptr, nullptr, kernel, nullptr, 1, &scratch, ++g_correlation};
  Dispatch(1, callback, &data);
  data.site = 1;
  Dispatch(1, callback, &data);
}
ATTNTRACE_EXPORT void fake_graph_launch(void* executable) {
  struct {
    void *executable, *stream;
  } parameters{executable, nullptr};
  ApiData data{0, "cuGraphLaunch", &parameters, nullptr, nullptr, nullptr, 1, nullptr, ++g_correlation};
  Dispatch(1, 514, &data);
}
ATTNTRACE_EXPORT void fake_resource(uint32_t callback, void* graph, void* node, void* original_node, void* executable) {
  GraphData graph_data{graph, nullptr, node, original_node, 0, nullptr, executable};
  ResourceData data{nullptr, nullptr, &graph_data};
  Dispatch(3, callback, &data);
}
ATTNTRACE_EXPORT int fake_enabled(int domain, uint32_t callback) {
  return g_subscriber != nullptr && (g_subscriber->domains.count(domain) != 0 || g_subscriber->enabled.count({domain, callback}) != 0);
}
ATTNTRACE_EXPORT int fake_calls() { return g_calls; }
ATTNTRACE_EXPORT int fake_subscriptions() { return g_subscriptions; }
ATTNTRACE_EXPORT int fake_held() { return g_subscriber != nullptr; }
