// Reference runs that the traced program made itself (--reference=inline).
#pragma once

#include <cstdint>

#include "report/decode/definitions.h"
#include "report/report.pb.h"

namespace attntrace {

// Those of one slot, whose variant has that id. What cannot be read is left out.
void AddReferences(const Definitions& definitions, uint32_t slot, uint32_t variant, Report* report);

}  // namespace attntrace
