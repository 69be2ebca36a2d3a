// Incidents as rules see them: which fault an exception tells of, and findings made of what was no call.
#pragma once

#include <string>
#include <vector>

#include "report/report.pb.h"

namespace attntrace::rules {

enum class Fault {
  kNone,            // not attention's
  kUnset,           // KeyError: None, where the selection is looked up
  kUnknownName,     // a name that is not registered
  kUnsupported,     // a name that the model's class refuses
  kMask,            // a mask of a type that the function does not take
  kRefused,         // no kernel for these inputs, or none that is allowed
  kNoFlexBackward,  // flex_attention on a CPU with gradients
  kRecompileLimit,  // Dynamo was told to fail at the limit
  kDerivative,      // the derivative of a derivative
  kLaunch,          // a grid that CUDA does not take, and attention that asks for one
  kOther,           // inside attention, in words that are not known
};

Fault FaultOf(const Report& report, const Incident& incident);

// One cause: the exception that ended it (or the operator that failed, where the program went on) and everything behind it that
// says the same; the one that knows most is at the front.
struct Failure {
  Fault fault;
  std::vector<const Incident*> incidents;
  bool fatal = false;  // nobody caught it
  const Incident& first() const { return *incidents.front(); }
};

// Of the kinds "exception", "thread-exception", "cause", "caught", "operator" and "double-backward", in order of the first incident's id.
std::vector<Failure> FindFailures(const Report& report);

// A finding with everything but its verdict.
Finding Describe(const Report& report, const Failure& failure);

// Call site and user's line of an incident; null where there is none.
const Frame* CallSite(const Report& report, const Incident& incident);
const Frame* UserLine(const Report& report, const Incident& incident);

// Attention on a GPU whose batch, or batch x heads, is beyond a grid's second and third axis: a call, or an operator that threw.
// Launches are asynchronous, so the exception may surface elsewhere.
inline constexpr int64_t kMostBlocks = 65535;  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
struct LargeGrid {
  const Variant* variant = nullptr;
  const Incident* incident = nullptr;
  int64_t batch = 0, blocks = 0;
};
LargeGrid BeyondGrid(const Report& report);

// "KeyError: None", the class without its module.
std::string InWords(const Incident& incident);

// "LlamaAttention (LlamaConfig), layer 3", as much as is known; else where it was called.
std::string LayerOf(const Report& report, const Incident& incident);

}  // namespace attntrace::rules
