// What to try on a call: the path observed, a fused kernel on the same call, then the smallest changes that may free one. Pure
// functions of what was answered so far; nothing but the standard library, like protocol.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/protocol.h"

namespace attntrace::reference {

struct Case {
  Request call;               // without a path; with `backward` where a backward was seen
  std::string observed_path;  // for the backend that ran, see PathOf
  bool flex = false;
};

struct Step {
  std::string purpose;  // "observed", "twin", "change"
  Request request;
};

struct Done {
  Step step;
  Response response;
};

// The path that runs what a backend (of tracer/spool/words.h) ran; empty where there is none.
std::string PathOf(const std::string& backend);

// What to ask next, given what was answered. Nothing: the case is done.
std::optional<Step> NextStep(const Case& one, const std::vector<Done>& done);

// The changes that would do something to this call, in the order of protocol.h.
std::vector<std::string> ApplicableChanges(const Request& call);

bool AltersResult(const Request& request);

}  // namespace attntrace::reference
