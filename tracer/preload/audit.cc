#include "tracer/preload/audit.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "tracer/preload/attach.h"
#include "tracer/preload/libraries.h"

namespace attntrace::preload {
namespace {

// Python's C API, as far as it is used here; the interpreter's headers would tie the preload to one of them.
using AuditHook = int (*)(const char* event, void* args, void* data);
using AddAuditHook = int (*)(AuditHook, void* data);
using IsInitialized = int (*)();

IsInitialized g_is_initialized = nullptr;

// An exception that nobody caught; source that is compiled (Inductor's among it); a file that is opened, which is how an
// exception that ends a thread, or that is caught and logged, shows: it has no event of its own, but its traceback is printed
// with lines of the sources.
bool IsForAgent(const char* event) noexcept {
  switch (event[0]) {
    case 's':
      return strcmp(event, "sys.excepthook") == 0;
    case 'c':
      return strcmp(event, "compile") == 0;
    case 'o':
      return strcmp(event, "open") == 0;
    default:
      return false;
  }
}

// Called with the GIL held, for every audit event of every interpreter: some, like builtins.id, come in millions. Two loads and
// a comparison or two decide. Never fails: a non-zero answer would abort what the program was doing.
int OnAuditEvent(const char* event, void* args, void*) noexcept {
  if (event[0] == 'i') {
    // Early imports come before the interpreter can be used; torch's come after.
    if (AttachIsPending() && strcmp(event, "import") == 0 && g_is_initialized() != 0 && LibrariesWereAdded()) {
      AttachIfTorchIsMapped(/*has_python=*/true);
    }
  } else if (IsForAgent(event)) {
    if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr && hooks->audit != nullptr) {
      int saved_errno = errno;
      hooks->audit(event, args);
      errno = saved_errno;
    }
  }
  return 0;
}

}  // namespace

bool WatchPython() noexcept {
  auto add = reinterpret_cast<AddAuditHook>(dlsym(RTLD_DEFAULT, "PySys_AddAuditHook"));
  g_is_initialized = reinterpret_cast<IsInitialized>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  return add != nullptr && g_is_initialized != nullptr && add(OnAuditEvent, nullptr) == 0;
}

}  // namespace attntrace::preload
