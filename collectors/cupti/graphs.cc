#include "collectors/cupti/graphs.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

constexpr size_t kMostNodes = 1 << 18;  // tags alive at a time; graphs beyond it are not attributed

struct Node {
  void* graph;
  uint64_t token;
};

// What one launch of an executable graph runs of a variant.
struct Share {
  uint32_t slot;
  uint64_t calls, kernels;
};

struct Graphs {
  std::mutex mutex;
  std::unordered_map<void*, Node> nodes;
  std::unordered_map<uint64_t, uint64_t> tokens;  // by CUPTI's number of the node
  std::unordered_map<uint64_t, uint32_t> slots;   // by token
  std::unordered_map<void*, std::vector<Share>> executables;
};

Graphs& All() noexcept {
  static auto* const graphs = new Graphs;
  return *graphs;
}

std::atomic<int (*)(void*, uint64_t*)> g_id_of{nullptr};

// Asked before the lock is taken: CUPTI may be waiting for us elsewhere.
uint64_t NumberOf(void* node) noexcept {
  auto* const id_of = g_id_of.load(std::memory_order_relaxed);
  uint64_t id = 0;
  return id_of != nullptr && node != nullptr && id_of(node, &id) == 0 ? id : 0;
}

// Tokens of the nodes cloned on this thread since it began to make an executable graph.
thread_local std::vector<uint64_t>* t_cloned = nullptr;

void Count(const Graphs& graphs, const std::vector<uint64_t>& tokens, std::vector<Share>* shares) {
  std::unordered_map<uint64_t, bool> counted;
  for (const uint64_t token : tokens) {
    const auto slot = graphs.slots.find(token);
    if (slot == graphs.slots.end()) continue;
    Share* share = nullptr;
    for (Share& one : *shares) {
      if (one.slot == slot->second) share = &one;
    }
    if (share == nullptr) share = &shares->emplace_back(Share{slot->second, 0, 0});
    ++share->kernels;
    if (!counted[token]) ++share->calls;
    counted[token] = true;
  }
}

// An executable graph is there: its nodes are those of the graph it was made from, or clones of them.
void MakeExecutable(Graphs* graphs, const cupti::GraphData& data) {
  std::vector<uint64_t> tokens;
  for (const auto& [node, tag] : graphs->nodes) {
    if (tag.graph == data.graph) tokens.push_back(tag.token);
  }
  if (tokens.empty() && t_cloned != nullptr) tokens = *t_cloned;
  std::vector<Share> shares;
  Count(*graphs, tokens, &shares);
  if (!shares.empty()) graphs->executables[data.executable] = std::move(shares);
}

void Handle(uint32_t callback, const cupti::GraphData& data, uint64_t token) {
  if (callback == cupti::kGraphExecCreateStarting) {
    if (t_cloned == nullptr) t_cloned = new std::vector<uint64_t>;
    t_cloned->clear();
    return;
  }
  const bool created = callback == cupti::kGraphNodeCreated && token != 0, cloned = callback == cupti::kGraphNodeCloned;
  const uint64_t number = created || cloned ? NumberOf(data.node) : 0;
  Graphs& graphs = All();
  const std::lock_guard<std::mutex> lock(graphs.mutex);
  const auto name = [&](uint64_t of) {
    if (number != 0 && graphs.tokens.size() < 2 * kMostNodes) graphs.tokens[number] = of;
  };
  switch (callback) {
    case cupti::kGraphNodeCreated:
      if (token != 0 && data.node_type == 0 && graphs.nodes.size() < kMostNodes) graphs.nodes[data.node] = {data.graph, token};
      if (token != 0 && data.node_type == 0) name(token);
      break;
    case cupti::kGraphNodeCloned:
      if (const auto original = graphs.nodes.find(data.original_node); original != graphs.nodes.end()) {
        const uint64_t tag = original->second.token;
        if (graphs.nodes.size() < kMostNodes) graphs.nodes[data.node] = {data.graph, tag};
        if (t_cloned != nullptr) t_cloned->push_back(tag);
        name(tag);
      }
      break;
    case cupti::kGraphExecCreated:
      MakeExecutable(&graphs, data);
      break;
    case cupti::kGraphNodeDestroyStarting:
      graphs.nodes.erase(data.node);
      break;
    case cupti::kGraphDestroyStarting:
      std::erase_if(graphs.nodes, [&](const auto& one) { return one.second.graph == data.graph; });
      break;
    case cupti::kGraphExecDestroyStarting:
      graphs.executables.erase(data.executable);
      break;
    default:
      break;
  }
}

}  // namespace

uint64_t NewCapture() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void NameCapture(uint64_t token, uint32_t slot) noexcept {
  try {
    Graphs& graphs = All();
    const std::lock_guard<std::mutex> lock(graphs.mutex);
    graphs.slots[token] = slot;
  } catch (...) {
    Spool().Add(Counter::kFaults);
  }
}

void OnGraphResource(uint32_t callback, const cupti::GraphData& data, uint64_t token) noexcept {
  try {
    Handle(callback, data, token);
  } catch (...) {
    Spool().Add(Counter::kFaults);
  }
}

void NumberNodes(int (*id_of)(void* node, uint64_t* id)) noexcept { g_id_of.store(id_of, std::memory_order_relaxed); }

uint32_t SlotOfNode(uint64_t id) noexcept {
  Graphs& graphs = All();
  const std::lock_guard<std::mutex> lock(graphs.mutex);
  const auto token = graphs.tokens.find(id);
  if (token == graphs.tokens.end()) return spool::kMaxVariants;
  const auto slot = graphs.slots.find(token->second);
  return slot != graphs.slots.end() ? slot->second : spool::kMaxVariants;
}

void OnGraphLaunch(void* executable) noexcept {
  SpoolWriter& spool = Spool();
  spool.Add(Counter::kGraphLaunches);
  Graphs& graphs = All();
  const std::lock_guard<std::mutex> lock(graphs.mutex);
  const auto found = graphs.executables.find(executable);
  if (found == graphs.executables.end()) return;
  for (const Share& share : found->second) {
    spool.counters(share.slot).replayed_calls.fetch_add(share.calls, std::memory_order_relaxed);
    spool.counters(share.slot).replayed_kernels.fetch_add(share.kernels, std::memory_order_relaxed);
    spool.Add(Counter::kGraphKernelsReplayed, share.kernels);
  }
}

}  // namespace attntrace
