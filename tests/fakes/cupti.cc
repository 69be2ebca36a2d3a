// A libcupti.so that plays CUPTI for tests without a device: one subscriber, an enabled set per (domain, callback), dispatch of
// what is enabled and nothing else. Programs drive it through fake_launch and its like, on the thread that "launches".
//
// Activity records are made at each launch while their kind is on, and handed over at a flush.
//
// FAKE_CUPTI_SUBSCRIBE=n: cuptiSubscribe answers n. FAKE_CUPTI_VERSION=n. FAKE_CUPTI_UNKNOWN=1: CUPTI_ERROR_INVALID_PARAMETER
// for callbacks above 600, as an older CUPTI. FAKE_CUPTI_HANG=cuptiName: that call never returns, from FAKE_CUPTI_HANG_AFTER
// calls on. FAKE_CUPTI_RECORDS: words of "reversed", "strangers" (records of other kinds between), "no-times", "ticks" (another
// clock), "drop" (each tenth). Every call in a process other than the one that loaded it aborts: a forked child must not.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

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

// Sleeps rather than spins: the machine is the other tests' too.
void Enter(const char* name = "") {
  ++g_calls;
  const char* hang = getenv("FAKE_CUPTI_HANG");
  static std::atomic<int> before{Environment("FAKE_CUPTI_HANG_AFTER", 0)};
  if (hang != nullptr && strcmp(hang, name) == 0 && before-- <= 0) {
    while (true) sleep(1000);
  }
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

std::atomic<uint32_t> g_correlation{0xfffffff0u};  // wraps soon

// ---- Activity records -------------------------------------------------------------------------------------------------------
using Requested = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using Completed = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);

struct Pending {
  uint32_t correlation;
  uint64_t node, ns;
};

std::mutex g_mutex;  // guards what follows; not held in a client's callbacks
Requested g_requested = nullptr;
Completed g_completed = nullptr;
std::set<int> g_kinds;
std::vector<Pending> g_pending;
size_t g_dropped = 0;
uint64_t (*g_clock)() = nullptr;
std::map<void*, uint64_t> g_nodes;

bool Records(const char* word) {
  const char* words = getenv("FAKE_CUPTI_RECORDS");
  return words != nullptr && strstr(words, word) != nullptr;
}

uint64_t Now() {
  if (g_clock != nullptr) return g_clock();
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return Records("ticks") ? 12345 : static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// The structure that CUPTI of this version fills.
size_t KernelSize() {
  const int version = Environment("FAKE_CUPTI_VERSION", 130000);
  return version < 130000 ? 208 : version < 130100 ? 216 : version < 130300 ? 224 : 256;
}
constexpr size_t kStrangerSize = 24;  // CUpti_ActivityExternalCorrelation

void Record(uint32_t correlation, uint64_t node) {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_kinds.count(10) != 0)
    g_pending.push_back({correlation, node, static_cast<uint64_t>(Environment("FAKE_CUPTI_NS", 1000))});
}

template <typename T>
void Put(uint8_t* at, size_t offset, T value) {
  memcpy(at + offset, &value, sizeof(value));
}

void WriteKernel(uint8_t* at, const Pending& one) {
  memset(at, 0xee, KernelSize());
  Put<int32_t>(at, 0, 10);
  const uint64_t end = Now();
  Put<uint64_t>(at, 16, Records("no-times") ? 0 : end - one.ns);
  Put<uint64_t>(at, 24, Records("no-times") ? 0 : end);
  Put<uint32_t>(at, 92, one.correlation);
  Put<uint64_t>(at, 144, one.node);
}

void Deliver() {
  std::vector<Pending> pending;
  Requested requested;
  Completed completed;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    pending.swap(g_pending);
    requested = g_requested;
    completed = g_completed;
  }
  if (Records("reversed")) std::reverse(pending.begin(), pending.end());
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0, most = 0, n = 0;
  for (const Pending& one : pending) {
    if (Records("drop") && ++n % 10 == 0) {
      ++g_dropped;
      continue;
    }
    const size_t needed = KernelSize() + (Records("strangers") ? kStrangerSize : 0);
    if (buffer != nullptr && used + needed > size) {
      completed(nullptr, 0, buffer, size, used);
      buffer = nullptr;
    }
    if (buffer == nullptr) {
      used = 0;
      if (requested != nullptr) requested(&buffer, &size, &most);
      if (buffer == nullptr) {
        ++g_dropped;
        continue;
      }
    }
    if (Records("strangers")) {
      memset(buffer + used, 0xee, kStrangerSize);
      Put<int32_t>(buffer + used, 0, 39);
      used += kStrangerSize;
    }
    WriteKernel(buffer + used, one);
    used += KernelSize();
  }
  if (buffer != nullptr) completed(nullptr, 0, buffer, size, used);
}

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
  Enter("cuptiSubscribe");
  if (int refusal = Environment("FAKE_CUPTI_SUBSCRIBE", 0)) return refusal;
  if (g_subscriber != nullptr) return 39;
  ++g_subscriptions;
  g_subscriber = new Subscriber;
  g_subscriber->callback = callback;
  g_subscriber->user = user;
  *subscriber = g_subscriber;
  return 0;
}
// Says who is there already where it is asked to; "somebody" where FAKE_CUPTI_SUBSCRIBE refuses everybody.
ATTNTRACE_EXPORT int cuptiSubscribe_v2(void** subscriber, Callback callback, void* user, void* parameters) {
  struct Parameters {
    size_t size;
    const char* name;
    char* other;
    size_t other_size;
  };
  const int result = cuptiSubscribe(subscriber, callback, user);
  auto* p = static_cast<Parameters*>(parameters);
  if (result == 39 && p != nullptr) snprintf(p->other, p->other_size, "CUPTI for somebody");
  return result;
}
ATTNTRACE_EXPORT int cuptiUnsubscribe(void* subscriber) {
  Enter("cuptiUnsubscribe");
  if (!IsCurrent(subscriber)) return 1;
  ++g_unsubscriptions;
  delete g_subscriber;
  g_subscriber = nullptr;
  return 0;
}
ATTNTRACE_EXPORT int cuptiEnableCallback(uint32_t enable, void* subscriber, int domain, uint32_t callback) {
  Enter("cuptiEnableCallback");
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
  Enter("cuptiFinalize");
  delete g_subscriber;
  g_subscriber = nullptr;
  return 0;
}

ATTNTRACE_EXPORT int cuptiActivityRegisterCallbacks(Requested requested, Completed completed) {
  Enter("cuptiActivityRegisterCallbacks");
  std::lock_guard<std::mutex> lock(g_mutex);
  g_requested = requested;
  g_completed = completed;
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)()) {
  Enter("cuptiActivityRegisterTimestampCallback");
  g_clock = clock;
  return 0;
}
ATTNTRACE_EXPORT int cuptiGetTimestamp(uint64_t* time) {
  *time = Now();
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityEnable(int kind) {
  Enter("cuptiActivityEnable");
  std::lock_guard<std::mutex> lock(g_mutex);
  g_kinds.insert(kind);
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityDisable(int kind) {
  Enter("cuptiActivityDisable");
  std::lock_guard<std::mutex> lock(g_mutex);
  g_kinds.erase(kind);
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityFlushAll(uint32_t) {
  Enter("cuptiActivityFlushAll");
  Deliver();
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  const auto size_at = [](const uint8_t* at) {
    int32_t kind;
    memcpy(&kind, at, sizeof(kind));
    return kind == 10 ? KernelSize() : kStrangerSize;
  };
  uint8_t* const next = *record == nullptr ? buffer : *record + size_at(*record);
  if (next >= buffer + valid) return 12;
  *record = next;
  return 0;
}
ATTNTRACE_EXPORT int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  Enter("cuptiActivityGetNumDroppedRecords");
  std::lock_guard<std::mutex> lock(g_mutex);
  *count = g_dropped;
  g_dropped = 0;
  return 0;
}
ATTNTRACE_EXPORT int cuptiGetGraphNodeId(void* node, uint64_t* id) {
  std::lock_guard<std::mutex> lock(g_mutex);
  *id = g_nodes.try_emplace(node, 7000 + g_nodes.size()).first->second;
  return 0;
}

// ---- What the tests drive ---------------------------------------------------------------------------------------------------
ATTNTRACE_EXPORT void fake_launch(const char* kernel, uint32_t callback) {
  uint64_t scratch = 0;
  ApiData data{0, "cuLaunchKernel", nullptr, nullptr, kernel, nullptr, 1, &scratch, ++g_correlation};
  Dispatch(1, callback, &data);
  Record(data.correlation_id, 0);
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
  return g_subscriber != nullptr &&
         (g_subscriber->domains.count(domain) != 0 || g_subscriber->enabled.count({domain, callback}) != 0);
}
// A kernel of a graph that is replayed.
ATTNTRACE_EXPORT void fake_replay(void* node) {
  uint64_t id = 0;
  cuptiGetGraphNodeId(node, &id);
  Record(g_correlation, id);
}
ATTNTRACE_EXPORT int fake_recording(int kind) { return g_kinds.count(kind) != 0; }
ATTNTRACE_EXPORT int fake_calls() { return g_calls; }
ATTNTRACE_EXPORT int fake_subscriptions() { return g_subscriptions; }
ATTNTRACE_EXPORT int fake_held() { return g_subscriber != nullptr; }
