// Where a call was, as a reader wants it named: the frames that matter of a call path, from the user's line inwards.
#pragma once

#include <string>
#include <vector>

#include "report/report.pb.h"

namespace attntrace {

// Null where the variant has no path, or the report is not whole.
const CallPath* PathOf(const Report& report, const Variant& variant);
const Frame* FrameAt(const Report& report, const CallPath& path, int position);

// Position in the path of the attention module's own code; -1 where there is none.
int ModulePosition(const Report& report, const CallPath& path, const Module& module);

// "models/llama/modeling_llama.py:212", "train.py:88", "libfoo.so". BaseLocation leaves out every folder.
std::string Location(const Report& report, const Frame& frame);
std::string BaseLocation(const Frame& frame);

struct Place {
  const Frame* frame;
  bool module;  // the attention module's own code
};

// One or two frames for every owner that the path goes through, outermost first, beginning with the user's code: where it left
// that owner's code, and the attention module. PyTorch's and Python's own frames are left out.
std::vector<Place> PlacesOf(const Report& report, const Variant& variant);

}  // namespace attntrace
