// Models whose parts select different implementations without having been asked to. Told by submodel-backend-differs; what
// else these calls would be blamed for is left to it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "report/report.pb.h"

namespace attntrace::rules {

// A part of a model with a configuration of its own, as far as it ran attention.
struct Part {
  Submodel row;
  std::set<std::string> selected;
  std::vector<const Variant*> variants;  // no backwards
  bool odd = false;                      // selects something else than `want`, and not by a request that names it
};

struct SplitModel {
  std::string model_class;
  std::string selection;  // of the model's own configuration
  std::string want;       // what the odd parts would be given to agree with the rest
  std::vector<Part> parts;
};

// Only models with an odd part, in the order of their first variants.
std::vector<SplitModel> FindSplitModels(const Report& report);

// Ids of the odd parts' variants, their backwards among them.
std::set<uint32_t> OddVariants(const Report& report);

}  // namespace attntrace::rules
