// Facts about uncompiled flex_attention are read once a place. What other variants of that place show (further shapes, the
// backward) is of the same cause.
#include <map>
#include <tuple>

#include "report/decode/stages.h"

namespace attntrace {

void ShareFacts(Report* report) {
  using Place = std::tuple<uint32_t, uint32_t, std::string>;  // process, call path, class of the module
  std::map<Place, const Variant*> known;
  std::map<uint32_t, const Variant*> by_id;
  const auto place = [](const Variant& variant) {
    return Place(variant.process(), variant.call_path(), variant.module().class_name());
  };
  for (const Variant& variant : report->variants()) {
    by_id[variant.id()] = &variant;
    if (!variant.facts().empty()) known.try_emplace(place(variant), &variant);
  }
  for (const char* const phase : {"forward", "recompute", "backward"}) {  // a backward leans on its forward
    for (Variant& variant : *report->mutable_variants()) {
      if (variant.phase() != phase || variant.backend() != "flex-dense" || !variant.facts().empty()) continue;
      const Variant* from = nullptr;
      if (const auto forward = by_id.find(variant.forward()); forward != by_id.end()) from = forward->second;
      if (from == nullptr || from->facts().empty()) {
        const auto same = known.find(place(variant));
        from = same == known.end() ? nullptr : same->second;
      }
      if (from != nullptr) *variant.mutable_facts() = from->facts();
    }
  }
}

}  // namespace attntrace
