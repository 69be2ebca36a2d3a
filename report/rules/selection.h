// Which attention implementations this environment has, and which of them takes a mask. Asked by the rules that advise a
// selection.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/report.pb.h"
#include "report/rules/incidents.h"

namespace attntrace::rules {

// What a layer was given for a mask: the type's name ("None", "Tensor", "BlockMask", "" unknown), and of a tensor its rank
// where it is known, else 0.
struct PassedMask {
  std::string type;
  int rank = 0;
};

PassedMask MaskOf(const Variant& variant);
PassedMask MaskOf(const Incident& incident);

// By the names that Transformers and its users register: what is not known by name is not recommended. `eager` is registered
// nowhere and never in the list.
std::vector<std::string> Registered(const Report& report);
std::vector<std::string> RegisteredTaking(const Report& report, const PassedMask& mask);

// The one to advise; what every Transformers registers where nothing is known of this one, and "" where none takes this mask.
std::string BestFor(const Report& report, const PassedMask& mask);

// Advice to select that one, in the words of `text`; to register one of one's own where none takes this mask.
void AdviseSelection(const Report& report, const PassedMask& mask, absl::string_view text, Finding* finding);

// Evidence "registered" and "registered, taking this mask"; nothing where Transformers was not loaded.
void AddRegistered(const Report& report, const PassedMask& mask, Finding* finding);

// A layer of Transformers', or one of its contract, whose selection is None. A class that computes attention in its own way has
// a configuration as well, and does not ask it.
bool IsUnset(const Module& module);

// A mask that eager does not take, where nobody chose eager: the missing selection is the cause.
bool FailedUnselected(const Failure& failure);

enum class Family { kUnknown, kEager, kSdpa, kFlex, kFlash };
// Of a name that was selected ("sdpa", "flash_attention_2", "kernels-community/flash-attn", "my_flex"), and of a backend that
// ran.
Family FamilyOfName(const std::string& name);
Family FamilyOfBackend(const Variant& variant);

}  // namespace attntrace::rules
