#include "tracer/preload/attach.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "tracer/preload/c10_memory.h"
#include "tracer/preload/cupti.h"
#include "tracer/preload/early_memory.h"
#include "tracer/preload/events.h"
#include "tracer/preload/libraries.h"
#include "tracer/preload/settings.h"
#include "tracer/preload/untraced.h"
#include "tracer/preload/version.h"
#include "tracer/spool/names.h"

namespace attntrace::preload {
namespace {

enum class State { kPending, kAttaching, kConnected, kDeclined };

std::atomic<State> g_state{State::kPending};
std::atomic<const AttntraceHooks*> g_hooks{nullptr};

// What attaching finds out. Static: written by the one thread that attaches, and the agent may keep pointers into it.
struct Found {
  char torch_library[PATH_MAX];
  char torch_version[128];
  char agent_folder[128];
  char agent_library[2 * PATH_MAX];
  char reason[1536];
  char next[PATH_MAX + 64];
};
Found g_found;

void AtExit() noexcept {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr && hooks->at_exit != nullptr) hooks->at_exit();
}

// Appends the folders of installed agents, "torch-2.6.0-oldabi, torch-2.11.0".
void ListAgents(char* text, size_t size) noexcept {
  size_t length = strlen(text);
  size_t begin = length;
  if (DIR* folder = opendir(GetSettings().agent_directory)) {
    while (dirent* entry = readdir(folder)) {
      if (strncmp(entry->d_name, names::kAgentFolderPrefix, sizeof(names::kAgentFolderPrefix) - 1) != 0) continue;
      int added = snprintf(text + length, size - length, "%s%s", length == begin ? "" : ", ", entry->d_name);
      if (added < 0 || static_cast<size_t>(added) >= size - length) break;
      length += static_cast<size_t>(added);
    }
    closedir(folder);
  }
  if (length == begin) snprintf(text + length, size - length, "none");
}

// The command that builds the missing agent. A wheel's library names its environment:
// <prefix>/lib/python3.x/site-packages/torch.
void AdviseBuild() noexcept {
  char python[PATH_MAX + 16] = "PYTHON_WITH_THIS_PYTORCH";
  if (const char* lib = strstr(g_found.torch_library, "/lib/python")) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%.*s/bin/python", static_cast<int>(lib - g_found.torch_library), g_found.torch_library);
    if (access(path, X_OK) == 0) memcpy(python, path, sizeof(path));
  }
  snprintf(g_found.next, sizeof(g_found.next), "make build PYTHON=%s", python);
}

bool FindAgent() noexcept {
  if (!ReadTorchVersion(g_found.torch_library, g_found.torch_version, sizeof(g_found.torch_version))) {
    snprintf(g_found.agent_folder, sizeof(g_found.agent_folder), "%sunknown", names::kAgentFolderPrefix);
    snprintf(g_found.reason, sizeof(g_found.reason), "no version.py or build-version tells the PyTorch version of %.600s",
             g_found.torch_library);
    return false;
  }
  AgentFolder(g_found.torch_version, g_found.agent_folder, sizeof(g_found.agent_folder));
  const char* directory = GetSettings().agent_directory;
  snprintf(g_found.agent_library, sizeof(g_found.agent_library), "%s/%s/%s", directory, g_found.agent_folder,
           names::kAgentLibrary);
  if (access(g_found.agent_library, R_OK) == 0) return true;
  snprintf(g_found.reason, sizeof(g_found.reason),
           "PyTorch %s found, no %s in %.500s, installed there: ", g_found.torch_version, g_found.agent_folder, directory);
  ListAgents(g_found.reason, sizeof(g_found.reason));
  AdviseBuild();
  return false;
}

const AttntraceHooks* StartAgent(const AttntraceStart& before) noexcept {
  void* agent = dlopen(g_found.agent_library, RTLD_NOW | RTLD_LOCAL);
  auto start = agent == nullptr ? nullptr : reinterpret_cast<AttntraceAgentStart>(dlsym(agent, ATTNTRACE_AGENT_START));
  if (start == nullptr) {
    const char* error = dlerror();
    snprintf(g_found.reason, sizeof(g_found.reason), "agent cannot be loaded: %.900s",
             error == nullptr ? "no reason given" : error);
    return nullptr;
  }
  // Never unloaded, not even when it refuses: it may have been seen by PyTorch already.
  const char* reason = nullptr;
  const AttntraceHooks* hooks = start(&before, &reason);
  if (hooks == nullptr) {
    snprintf(g_found.reason, sizeof(g_found.reason), "agent %s refused: %.900s", g_found.agent_folder,
             reason == nullptr ? "no reason given" : reason);
  } else if (hooks->size != sizeof(AttntraceHooks)) {
    snprintf(g_found.reason, sizeof(g_found.reason), "agent %s was built for another preload", g_found.agent_folder);
    AdviseBuild();
    hooks = nullptr;
  }
  return hooks;
}

void Attach(bool has_python) noexcept {
  GetRealMemory();  // now, where no allocator holds its lock
  AttntraceStart start{};
  const AttntraceHooks* hooks = nullptr;
  if (FindAgent()) {
    start.size = sizeof(start);
    start.spool_directory = GetSettings().spool_directory;
    start.torch_version = g_found.torch_version;
    start.torch_library = g_found.torch_library;
    start.has_python = has_python ? 1 : 0;
    start.cupti = CuptiForAgent();
    start.global_callbacks = GlobalCallbacksAdded();
    CountedSoFar(&start);
    hooks = StartAgent(start);
  }
  if (hooks == nullptr) {
    g_state.store(State::kDeclined, std::memory_order_release);
    SayUntraced(g_found.agent_folder, g_found.reason, g_found.next);
    return;
  }
  g_hooks.store(hooks, std::memory_order_release);
  g_state.store(State::kConnected, std::memory_order_release);
  HandOver(*hooks, start);
  // Registered after libtorch's and the agent's own destructors, so it runs before them; in Python after finalisation.
  atexit(AtExit);
}

}  // namespace

const AttntraceHooks* ConnectedHooks() noexcept { return g_hooks.load(std::memory_order_acquire); }

bool AttachIsPending() noexcept { return g_state.load(std::memory_order_acquire) == State::kPending; }

bool AttachWasDeclined() noexcept { return g_state.load(std::memory_order_acquire) == State::kDeclined; }

void AttachIfTorchIsMapped(bool has_python) noexcept {
  int saved_errno = errno;
  char library[PATH_MAX];
  if (FindLibrary("libtorch_cpu", library, sizeof(library)) && access(GetSettings().spool_directory, W_OK | X_OK) == 0) {
    State expected = State::kPending;
    if (g_state.compare_exchange_strong(expected, State::kAttaching, std::memory_order_acq_rel)) {
      memcpy(g_found.torch_library, library, sizeof(library));
      Attach(has_python);
    }
  }
  errno = saved_errno;
}

}  // namespace attntrace::preload
