// Where the preload gets its turns in a process: before main, at main, at exit.
//
// Not covered: a program that has neither an interpreter nor libtorch when it starts and loads one later (dlopen of a plug-in,
// an embedded interpreter that is not linked). No event tells of it at a moment when loading the agent is known to be safe, so
// such a process runs untraced, and says so at its exit.
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "tracer/preload/attach.h"
#include "tracer/preload/audit.h"
#include "tracer/preload/libraries.h"
#include "tracer/preload/settings.h"
#include "tracer/preload/untraced.h"

namespace attntrace::preload {
namespace {

using Main = int (*)(int, char**, char**);
using LibcStartMain = int (*)(Main, int, char**, void (*init)(), void (*fini)(), void (*rtld_fini)(), void* stack_end);

bool g_python = false;
Main g_main = nullptr;

__attribute__((constructor)) void OnLoad() noexcept {
  ReadSettings();
  if (GetSettings().tracing) g_python = WatchPython();
}

__attribute__((destructor)) void OnExit() noexcept {
  char path[PATH_MAX];
  if (GetSettings().tracing && AttachIsPending() && FindLibrary("libtorch_cpu", path, sizeof(path))) {
    RecordUntraced(g_python ? "libtorch was loaded and no Python import followed"
                            : "libtorch was loaded after the program had started, and not by a Python that it is linked with");
  }
}

// All constructors of libtorch and of the program have run, nothing of the program itself has. Where an interpreter is linked,
// its imports tell the moment instead: by then the agent can use Python.
int AtMain(int argc, char** argv, char** environment) {
  if (!g_python) AttachIfTorchIsMapped(/*has_python=*/false);
  return g_main(argc, argv, environment);
}

}  // namespace
}  // namespace attntrace::preload

extern "C" __attribute__((visibility("default"))) int __libc_start_main(attntrace::preload::Main main, int argc, char** argv,
                                                                        void (*init)(), void (*fini)(), void (*rtld_fini)(),
                                                                        void* stack_end) {
  using namespace attntrace::preload;
  auto real = reinterpret_cast<LibcStartMain>(dlsym(RTLD_NEXT, "__libc_start_main"));
  if (real == nullptr) _Exit(127);  // no libc: nothing of this process can run
  g_main = main;
  return real(GetSettings().tracing ? AtMain : main, argc, argv, init, fini, rtld_fini, stack_end);
}
