#include "tracer/preload/settings.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/spool/names.h"

namespace attntrace::preload {
namespace {

Settings g_settings;

bool Copy(const char* text, char (&to)[PATH_MAX]) noexcept {
  if (text == nullptr || text[0] == '\0') return false;
  size_t length = strlen(text);
  if (length >= sizeof(to)) return false;
  memcpy(to, text, length + 1);
  return true;
}

// Agents are installed beside the preload; the variable is for those who keep them elsewhere.
bool FolderOfThisLibrary(char (&to)[PATH_MAX]) noexcept {
  Dl_info info;
  if (dladdr(&g_settings, &info) == 0 || !Copy(info.dli_fname, to)) return false;
  char* slash = strrchr(to, '/');
  if (slash == nullptr) return false;
  *slash = '\0';
  return true;
}

}  // namespace

const Settings& GetSettings() noexcept { return g_settings; }

void ReadSettings() noexcept {
  // secure_getenv: a program that runs with another user's rights takes no orders from this user's environment.
  if (!Copy(secure_getenv(names::kSpoolDirectory), g_settings.spool_directory)) return;
  if (!Copy(secure_getenv(names::kAgentDirectory), g_settings.agent_directory) &&
      !FolderOfThisLibrary(g_settings.agent_directory)) {
    return;
  }
  g_settings.tracing = true;
}

}  // namespace attntrace::preload
