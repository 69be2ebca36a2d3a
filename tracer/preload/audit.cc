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

// Called with the GIL held, for every audit event of every interpreter: some, like builtins.id, come in millions. Two loads and
// a comparison or two decide. Never fails: a non-zero answer would abort what the program was doing.
int OnAuditEvent(const char* event, void* args, void*) noexcept {
  if (event[0] == 'i') {
    // Early imports come before the interpreter can be used; torch's come after.
    if (AttachIsPending() && strcmp(event, "import") == 0 && g_is_initialized() != 0 && LibrariesWereAdded()) {
      AttachIfTorchIsMapped(/*has_python=*/true);
    }
  } else if (event[0] == 's' && strcmp(event, "sys.excepthook") == 0) {
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
