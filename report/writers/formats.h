// One function a format; writers.cc lists them.
#pragma once

#include <string>

#include "report/writers/writers.h"

namespace attntrace {

std::string WriteText(const Report& report, const WriterOptions& options);
std::string WriteJson(const Report& report, const WriterOptions& options);

}  // namespace attntrace
